//! The cost of NVML's calls, how often its energy counter moves, and whether sampling disturbs launches.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::device::{Gpu, raw};
use crate::figures::{median, most};
use crate::findings::{Check, Findings, Theme};
use crate::nvml::Nvml;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "sensors",
    checks: &[
        Check {
            name: "what do NVML's calls cost, and how often does its energy counter move?",
            bound: "none, except that the counter does not go back; the results are figures",
            run: costs,
        },
        Check {
            name: "do samples every 100 ms slow down launches?",
            bound: "none; the results are figures",
            run: disturbance,
        },
    ],
};

const CALLS: usize = 20;
const LAUNCHES: usize = 200;

/// Loads NVML and finds the device under test.
fn open(gpu: &Gpu, findings: &mut Findings) -> Result<(Nvml, usize), Trouble> {
    let (nvml, device) = Nvml::with_device(gpu)?;
    findings.note(format!("NVML is {}", nvml.path));
    Ok((nvml, device))
}

fn costs(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (nvml, device) = open(gpu, findings)?;
    let mut first = 0;
    if nvml.device_by_index(0, &raw mut first) == 0 {
        let same = if first == device { "" } else { "not " };
        findings.note(format!("NVML's device 0 is {same}CUDA's device 0"));
    }
    let (mut number, mut energy, mut two, mut three) = (0, 0, [0; 2], [0; 3]);
    let mut calls: [(&str, &mut dyn FnMut() -> u32); 6] = [
        ("power", &mut || nvml.power(device, &raw mut number)),
        ("energy", &mut || nvml.energy(device, &raw mut energy)),
        ("load", &mut || nvml.utilization(device, &raw mut two)),
        ("memory", &mut || nvml.memory(device, &raw mut three)),
        ("clock", &mut || {
            let mut clock = 0;
            nvml.clock(device, 1, &raw mut clock)
        }),
        ("temperature", &mut || {
            let mut degrees = 0;
            nvml.temperature(device, 0, &raw mut degrees)
        }),
    ];
    for (name, call) in &mut calls {
        let mut times = Vec::with_capacity(CALLS);
        let mut code = 0;
        for _ in 0..CALLS {
            let began = Instant::now();
            code = call();
            times.push(began.elapsed().as_nanos() as f64);
        }
        if code == 0 {
            findings.figure(format!("{name}, median"), median(&times) / 1e3, "µs");
            findings.figure(format!("{name}, greatest"), most(&times) / 1e3, "µs");
        } else {
            findings.note(format!("{name} is not available (code {code})"));
        }
    }
    step_of_counter(gpu, &nvml, device, findings)
}

/// Watches the energy counter for a second of work.
fn step_of_counter(
    gpu: &Gpu,
    nvml: &Nvml,
    device: usize,
    findings: &mut Findings,
) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    gpu.kernels.spin(raw(&stream), 1_000_000_000, 0)?;
    let (began, mut last, mut steps) = (Instant::now(), 0, Vec::new());
    while began.elapsed() < Duration::from_secs(1) {
        let mut now = 0;
        if nvml.energy(device, &raw mut now) != 0 {
            break;
        }
        findings.expect(now >= last, || {
            format!("the energy counter went from {last} mJ back to {now} mJ")
        });
        if now != last {
            steps.push(began.elapsed().as_secs_f64() * 1e3);
            last = now;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    stream.synchronize()?;
    let between: Vec<f64> = steps
        .windows(2)
        .skip(1)
        .map(|pair| pair[1] - pair[0])
        .collect();
    if between.is_empty() {
        findings.note("the energy counter did not move in a second");
    } else {
        findings.figure(
            "between steps of the energy counter",
            median(&between),
            "ms",
        );
    }
    Ok(())
}

fn disturbance(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (nvml, device) = open(gpu, findings)?;
    let stream = gpu.stream()?;
    // A second each, so that several samples fall into it.
    let launches = || -> Result<Vec<f64>, Trouble> {
        let (began, mut times) = (Instant::now(), Vec::new());
        while began.elapsed() < Duration::from_secs(1) {
            for _ in 0..LAUNCHES {
                let launched = Instant::now();
                gpu.kernels.empty(raw(&stream))?;
                times.push(launched.elapsed().as_nanos() as f64);
            }
            stream.synchronize()?;
        }
        Ok(times)
    };
    let without = launches()?;
    let is_over = AtomicBool::new(false);
    let with = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                let (mut number, mut energy, mut two, mut three) = (0, 0, [0; 2], [0; 3]);
                nvml.power(device, &raw mut number);
                nvml.energy(device, &raw mut energy);
                nvml.utilization(device, &raw mut two);
                nvml.memory(device, &raw mut three);
                nvml.clock(device, 1, &raw mut number);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let times = launches();
        is_over.store(true, Relaxed);
        times
    })?;
    for (name, times) in [("without samples", without), ("with samples", with)] {
        findings.figure(format!("a launch {name}, median"), median(&times), "ns");
        findings.figure(
            format!("a launch {name}, greatest"),
            most(&times) / 1e3,
            "µs",
        );
    }
    Ok(())
}
