//! The readings of the profiler's sampler, in child processes, compared with what NVML answers the suite.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use profiler_runtime::report::{GpuDevice, GpuQuantity, GpuSample, ThrottleReasons};
use profiler_runtime::{Profile, Trace, scope};

use crate::answers::{Answers, grown, now};
use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::driver::made;
use crate::figures::{least, median, most};
use crate::findings::{Check, Findings, Theme};
use crate::nvml::{Nvml, uuid_text};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "readings of sensors",
    checks: &[
        Check {
            name: "each reading of a device agrees with what NVML answers the suite",
            bound: "samples every 100 ms before, during and after a spin of a second and an allocation of 64 MiB, beside the \
                    suite's own calls every 50 ms: the profiler reads each quantity that NVML has, in at least half of \
                    its samples; nine of ten readings lie between the least and the greatest of the suite's readings \
                    within 150 ms, or beyond by at most the tolerance in the notes, and so do the reasons for lower clocks; \
                    energy and bytes of links grow as for the suite between the same times, within two of its calls and \
                    2 %; name, UUID and memory of the device are those of CUDA",
            run: |gpu, findings| {
                Nvml::with_device(gpu)?;
                child::judged(READINGS, &[], findings)
            },
        },
        Check {
            name: "the energy of a spin is its power times its length",
            bound: "a spin of 2 s in one scope: the energy of the scope's row is its GPU time times the mean of the suite's \
                    readings of the power in its second half, within 20 %: the counter has steps of 0.1 s, 5 % of the \
                    spin at each end, and as much is shared out by time with the idle time around; the rest is for the \
                    clocks that rise at the beginning, and for the sensor, which A100 and H100 read a quarter of the \
                    time. Skipped where energy is not shared out: with MIG, or beside other processes",
            run: |gpu, findings| {
                Nvml::with_device(gpu)?;
                child::judged(ENERGY, &[], findings)
            },
        },
    ],
};

const READINGS: &str = "readings";
const ENERGY: &str = "energy of a spin";

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: READINGS,
        play: || child::judge(readings),
    },
    Part {
        name: ENERGY,
        play: || child::judge(energy),
    },
];

/// How often the suite reads.
const PERIOD: Duration = Duration::from_millis(50);
/// A quantity that rises and falls, and by how much of it and how much more a reading may lie beyond the suite's.
const LEVELS: [(GpuQuantity, f64, f64); 9] = [
    (GpuQuantity::Utilization, 0.0, 1.0),
    (GpuQuantity::MemoryUtilization, 0.0, 1.0),
    (GpuQuantity::MemoryUsed, 0.0, (1 << 20) as f64),
    (GpuQuantity::Power, 0.03, 1.0),
    (GpuQuantity::PowerInstant, 0.1, 5.0),
    (GpuQuantity::Temperature, 0.0, 1.0),
    (GpuQuantity::SmClock, 0.0, 15.0),
    (GpuQuantity::MemoryClock, 0.0, 15.0),
    (GpuQuantity::PerformanceState, 0.0, 0.0),
];

/// A quantity that only grows.
const COUNTERS: [GpuQuantity; 5] = [
    GpuQuantity::Energy,
    GpuQuantity::PcieSent,
    GpuQuantity::PcieReceived,
    GpuQuantity::NvlinkSent,
    GpuQuantity::NvlinkReceived,
];

/// Runs `work` in a session that samples every 100 ms, while the suite reads these quantities. Returns the window and the
/// suite's readings.
fn sampled(
    gpu: &Gpu,
    quantities: &[GpuQuantity],
    period: Duration,
    work: impl FnOnce() -> Result<(), Trouble>,
) -> Result<(Arc<Trace>, Vec<Answers>), Trouble> {
    let (nvml, device) = Nvml::with_device(gpu)?;
    let (own, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let trace = std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Relaxed) {
                let answers = Answers::now(&nvml, device, quantities);
                own.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(answers);
                std::thread::sleep(period);
            }
        });
        let session = Profile::builder()
            .kernels(false)
            .gpu_samples(Duration::from_millis(100));
        let (done, trace) = session.run(|_| work());
        std::thread::sleep(2 * period);
        is_over.store(true, Relaxed);
        done?;
        trace.map_err(|error| Trouble::Missing(error.to_string()))
    })?;
    Ok((
        trace,
        own.into_inner().unwrap_or_else(PoisonError::into_inner),
    ))
}

/// Returns the device under test in a window, with its samples.
fn device_in<'t>(gpu: &Gpu, trace: &'t Trace) -> Result<(&'t GpuDevice, &'t [GpuSample]), Trouble> {
    let uuid = uuid_text(gpu.uuid()?);
    let known: Vec<&str> = trace
        .gpu_samples()
        .map(|(device, _)| &*device.uuid)
        .collect();
    let missing = format!("{uuid} was not sampled, but {known:?}");
    let mut devices = trace.gpu_samples();
    let device = devices.find(|(device, _)| device.uuid == uuid);
    device.ok_or(Trouble::Missing(missing))
}

fn readings(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const BYTES: usize = 64 << 20;
    let levels = LEVELS.iter().map(|(quantity, ..)| *quantity);
    let quantities: Vec<GpuQuantity> = levels.chain(COUNTERS).collect();
    let stream = gpu.stream()?;
    // The sensors of a simulated device follow its work at once.
    let tenths = if gpu.simulated { 5 } else { 10 };
    let (trace, own) = sampled(gpu, &quantities, PERIOD, || {
        std::thread::sleep(Duration::from_millis(400));
        for _ in 0..tenths {
            gpu.kernels.spin(raw(&stream), 100_000_000, 0)?;
        }
        let memory: u64 = made(gpu.driver, "cuMemAlloc", |address| {
            gpu.driver.cuMemAlloc_v2(address, BYTES)
        })?;
        stream.synchronize()?;
        std::thread::sleep(Duration::from_millis(400));
        gpu.driver
            .check("cuMemFree", gpu.driver.cuMemFree_v2(memory))
    })?;
    let (device, samples) = device_in(gpu, &trace)?;
    findings.figure("samples", samples.len() as f64, "");
    findings.expect(samples.len() >= tenths, || {
        format!("{} samples in {}00 ms", samples.len(), tenths + 8)
    });
    let name = gpu.context.name()?;
    findings.expect(device.name == name, || {
        format!("the device is {:?}, for CUDA {name:?}", device.name)
    });
    let bytes = device.memory_bytes.map_or(f64::NAN, |bytes| bytes as f64);
    findings.expect_between(
        "the size of the memory by that of CUDA",
        bytes / gpu.context.total_mem()? as f64,
        0.99,
        1.1,
    );
    for (quantity, share, more) in LEVELS {
        level(findings, samples, &own, (quantity, share, more));
    }
    reasons(findings, samples, &own);
    for quantity in COUNTERS {
        counter(findings, samples, &own, quantity);
    }
    Ok(())
}

/// Returns `true` if NVML has answers of a quantity, and then expects the profiler to have readings.
fn has_readings(
    findings: &mut Findings,
    samples: &[GpuSample],
    own: &[Answers],
    quantity: GpuQuantity,
) -> bool {
    let answered = own.iter().filter_map(|answers| answers.get(quantity));
    let read = samples.iter().filter_map(|sample| sample.get(quantity));
    let (answered, read, key) = (answered.count(), read.count(), quantity.key());
    if 2 * answered < own.len() {
        findings.note(format!("{key}: NVML has no answers"));
        return false;
    }
    findings.expect(2 * read >= samples.len(), || {
        format!("{key}: {read} of {} samples have a reading", samples.len())
    });
    read > 0
}

/// Judges a quantity that rises and falls.
fn level(
    findings: &mut Findings,
    samples: &[GpuSample],
    own: &[Answers],
    (quantity, share, more): (GpuQuantity, f64, f64),
) {
    if !has_readings(findings, samples, own, quantity) {
        return;
    }
    let key = quantity.key();
    let (mut beyond, mut example) = (Vec::new(), String::new());
    for sample in samples {
        let own: Vec<f64> = own
            .iter()
            .filter(|answers| answers.is_near(sample))
            .filter_map(|answers| answers.get(quantity))
            .collect();
        if let (Some(read), false) = (sample.get(quantity), own.is_empty()) {
            let (low, high) = (least(&own), most(&own));
            let off = (low - read).max(read - high).max(0.0);
            if off > share * read + more {
                example = format!("{read} is not between {low} and {high}");
            }
            beyond.push(off - share * read.abs() - more);
        }
    }
    let agree = beyond.iter().filter(|off| **off <= 0.0).count() as f64 / beyond.len() as f64;
    findings.figure(format!("{key}: readings that agree"), agree * 100.0, "%");
    findings.note(format!(
        "{key}: may lie beyond by {more} and {} %",
        share * 100.0
    ));
    findings.expect(agree >= 0.9, || {
        format!(
            "{key}: {:.0} % of the readings agree: {example}",
            agree * 100.0
        )
    });
}

/// Judges the reasons for lower clocks.
fn reasons(findings: &mut Findings, samples: &[GpuSample], own: &[Answers]) {
    let answered = |answers: &&Answers| answers.reasons.is_some();
    if 2 * own.iter().filter(answered).count() < own.len() {
        findings.note("reasons for lower clocks: NVML has no answers");
        return;
    }
    let agrees = |sample: &&GpuSample| {
        let bits = sample.throttle.map(ThrottleReasons::bits);
        let mut near = own.iter().filter(|answers| answers.is_near(sample));
        bits.is_some() && near.any(|answers| answers.reasons == bits)
    };
    let agree = samples.iter().filter(agrees).count() as f64 / samples.len() as f64;
    findings.figure(
        "reasons for lower clocks: readings that agree",
        agree * 100.0,
        "%",
    );
    findings.expect(agree >= 0.9, || {
        format!(
            "{:.0} % of the reasons for lower clocks agree",
            agree * 100.0
        )
    });
}

/// Judges a quantity that only grows.
fn counter(findings: &mut Findings, samples: &[GpuSample], own: &[Answers], quantity: GpuQuantity) {
    if !has_readings(findings, samples, own, quantity) {
        return;
    }
    let key = quantity.key();
    if !own
        .iter()
        .filter_map(|answers| answers.get(quantity))
        .is_sorted()
    {
        findings.note(format!("{key}: the counter began again at zero meanwhile"));
        return;
    }
    let bounded: Vec<&GpuSample> = samples
        .iter()
        .filter(|sample| grown(own, quantity, sample.unix_ns, sample.unix_ns).is_some())
        .collect();
    let (Some(first), Some(last)) = (bounded.first(), bounded.last()) else {
        findings.failures.push(format!(
            "{key}: no sample lies between the suite's readings"
        ));
        return;
    };
    // Each reading is the growth since the sample before.
    let read: f64 = bounded
        .iter()
        .skip(1)
        .filter_map(|sample| sample.get(quantity))
        .sum();
    let (low, high) =
        grown(own, quantity, first.unix_ns, last.unix_ns).unwrap_or((f64::NAN, f64::NAN));
    findings.figure(format!("{key}: growth, profiler"), read, "");
    findings.figure(format!("{key}: growth, suite, at most"), high, "");
    findings.expect_between(
        &format!("{key}: the growth"),
        read,
        low * 0.98 - 1.0,
        high * 1.02 + 1.0,
    );
}

fn energy(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const NAME: &str = "spin for energy";
    let stream = gpu.stream()?;
    // At least ten steps of the energy counter: a row with less has no energy.
    let tenths = if gpu.simulated { 12 } else { 20 };
    let (mut begin, mut end) = (0, 0);
    let quantities = [GpuQuantity::PowerInstant, GpuQuantity::Power];
    let (trace, own) = sampled(gpu, &quantities, PERIOD / 2, || {
        std::thread::sleep(Duration::from_millis(300));
        {
            let _scope = scope!("spin for energy", stream = &stream);
            begin = now();
            for _ in 0..tenths {
                gpu.kernels.spin(raw(&stream), 100_000_000, 0)?;
            }
        }
        stream.synchronize()?;
        end = now();
        std::thread::sleep(Duration::from_millis(400));
        Ok(())
    })?;
    let (device, _) = device_in(gpu, &trace)?;
    if device.is_mig || device.compute_processes.unwrap_or(0) > 1 {
        return Err(Trouble::Skip(format!(
            "energy is not shared out: MIG is {}, and {} processes compute on the device",
            if device.is_mig { "on" } else { "off" },
            device.compute_processes.unwrap_or(0),
        )));
    }
    let middle = begin + (end - begin) / 2;
    let in_second_half = own
        .iter()
        .filter(|answers| answers.began >= middle && answers.ended <= end);
    let watts: Vec<f64> = in_second_half
        .filter_map(|answers| {
            quantities
                .iter()
                .find_map(|quantity| answers.get(*quantity))
        })
        .collect();
    if watts.is_empty() {
        return Err(Trouble::Skip("NVML has no reading of the power".to_owned()));
    }
    let mean = watts.iter().sum::<f64>() / watts.len() as f64;
    let averages = trace.key_averages();
    let row = averages.row(NAME);
    let row = row.ok_or_else(|| Trouble::Missing(format!("`{NAME}` has no row")))?;
    let seconds = row.cuda.as_ref().map_or(f64::NAN, |times| times.total_ns) / 1e9;
    let joules = row.energy.and_then(|energy| energy.joules);
    let joules = joules.ok_or_else(|| {
        Trouble::Missing(format!(
            "`{NAME}` has no energy after {seconds:.3} s of GPU time"
        ))
    })?;
    findings.figure("GPU time of the spin", seconds, "s");
    findings.figure("power in its second half, median", median(&watts), "W");
    findings.figure("power in its second half, mean", mean, "W");
    findings.figure("energy of its row", joules, "J");
    let share = joules / (mean * seconds);
    findings.figure("energy by power times length", share, "");
    findings.expect_between("the energy by power times length", share, 0.8, 1.2);
    Ok(())
}
