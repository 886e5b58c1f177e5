//! Samples of a device say what its sensors do, and each fault of NVML has one line and no other consequence.

use std::process::Command;
use std::time::{Duration, Instant};

use profiler_runtime::report::{GpuQuantity, GpuSample, ThrottleReasons};
use profiler_runtime::{Profile, Trace, init, scope, summary};
use profiler_tests::gpu::{Gpu, Held, OnDriver, Ran, finish, row, simulator, started, tell, told};

use crate::support::samples::{gpu, next_sample, sampled, wait};

const SECOND: u64 = 1_000_000_000;

/// Returns the samples of the only device in a window.
fn samples_of(trace: &Trace) -> &[GpuSample] {
    let mut devices = trace.gpu_samples();
    let (_, samples) = devices.next().expect("a device is sampled");
    assert!(devices.next().is_none());
    samples
}

fn without_an_interval(command: &mut Command) {
    command.env_remove("PROFILER_GPU_SAMPLES");
}

#[test(on = sampled().script("nvml device 0 watts 60 300").set_up(without_an_interval))]
fn a_window_has_the_readings_of_the_sensors() {
    let (_profiler, device, stream) = started();
    let memory = stream.alloc_zeros::<u8>(1 << 20).expect("memory");
    let session = Profile::builder().gpu_samples(Duration::ZERO);
    let ((), trace) = session.run(|_| {
        {
            let _scope = scope!("work", stream = &stream);
            device.spin(&stream, SECOND / 2);
        }
        finish(&stream);
        simulator()
            .advance(SECOND / 2)
            .expect("the clock is virtual");
        tell(
            "nvml device 0 temperature 71; nvml device 0 throttle 68; nvml device 0 sm-clock 1200",
        );
        // Before the first one, nothing is known of the counters.
        wait(|| gpu(0).samples > 0);
        tell("nvml device 0 links 4294967290 10 1024 2048");
        next_sample(0);
        tell("nvml device 0 links 4 30 5120 6144");
        next_sample(0);
    });
    let trace = trace.expect("a window");
    let samples = samples_of(&trace);
    assert!(samples.is_sorted_by_key(|sample| sample.unix_ns));
    let started = trace.start().duration_since(std::time::UNIX_EPOCH);
    let opened = i64::try_from(started.expect("after 1970").as_nanos()).expect("63 bits");
    assert!(
        samples
            .iter()
            .filter(|sample| sample.unix_ns < opened)
            .count()
            <= 1
    );

    let last = samples.last().expect("samples");
    for (quantity, expected) in [
        (GpuQuantity::Utilization, 50.0),
        (GpuQuantity::MemoryUsed, memory.len() as f64),
        (GpuQuantity::Power, 210.0),
        (GpuQuantity::PowerInstant, 60.0),
        (GpuQuantity::Temperature, 71.0),
        (GpuQuantity::SmClock, 1_200.0),
        (GpuQuantity::MemoryClock, 1_593.0),
        (GpuQuantity::PerformanceState, 0.0),
    ] {
        let read = last.get(quantity);
        // The period of the load may begin within the copy of the kernel's module or the fill of the memory.
        let is_right = read.is_some_and(|read| (read - expected).abs() <= expected / 100.0);
        assert!(is_right, "{}: {read:?}, not {expected}", quantity.key());
    }
    let reasons: Vec<&str> = last
        .throttle
        .into_iter()
        .flat_map(ThrottleReasons::names)
        .collect();
    assert_eq!(reasons, ["power cap", "hardware thermal slowdown"]);
    let sum = |quantity| -> f64 {
        samples
            .iter()
            .filter_map(|sample| sample.get(quantity))
            .sum()
    };
    // The counters before the window's first sample are unknown.
    let grown = [
        (GpuQuantity::PcieSent, 4_294_967_290.0 + 10.0),
        (GpuQuantity::PcieReceived, 30.0),
        (GpuQuantity::NvlinkSent, 5_120.0),
        (GpuQuantity::NvlinkReceived, 6_144.0),
    ];
    for (quantity, expected) in grown {
        let grown = sum(quantity);
        let is_right = (grown - expected).abs() < 0.5;
        assert!(is_right, "{}: {grown}, not {expected}", quantity.key());
    }
    let samples = samples.len();
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        gpu(0).samples <= samples as u64 + 1,
        "after the window there is one more sample at most"
    );
}

fn has_two_samples(ran: &Ran) {
    let json = std::fs::read_to_string(ran.file("summary.json")).expect("the summary");
    assert!(json.contains("\"samples\":2"), "{json}");
}

#[test(on = sampled()
    .env("PROFILER_GPU_SAMPLES", "1h")
    .file("PROFILER_SUMMARY", "summary.json")
    .then(has_two_samples))]
fn the_end_of_the_program_takes_a_last_sample() {
    let (profiler, device, stream) = started();
    {
        let _scope = scope!("work", stream = &stream);
        device.spin(&stream, SECOND);
    }
    wait(|| !summary().gpus.is_empty());
    stream.synchronize().expect("nothing failed");
    drop(profiler);
}

/// The name of a fault, its script, and the text of the only warning, if there is one.
const FAULTS: [(&str, &str, &str); 8] = [
    (
        "no driver",
        "fault nvmlInitWithFlags always return 9",
        "code 9: no NVIDIA driver is loaded",
    ),
    (
        "mismatch",
        "fault nvmlInitWithFlags always return 18",
        "code 18: library and kernel module",
    ),
    (
        "no device",
        "fault nvmlDeviceGetCount_v2 always return 999",
        "NVML lists no devices (code 999",
    ),
    (
        "lost",
        "fault nvmlDeviceGetMemoryInfo from 3 return 15",
        "has no samples any more (code 15",
    ),
    (
        "unknown code",
        "fault nvmlDeviceGetMemoryInfo always return 4711",
        "nvmlDeviceGetMemoryInfo has failed",
    ),
    (
        "slow",
        "clock real; fault nvmlDeviceGetPerformanceState always delay 3ms",
        "nvmlDeviceGetPerformanceState takes",
    ),
    (
        "not supported",
        "fault nvmlDeviceGetTemperature always return 3",
        "",
    ),
    (
        "no fields",
        "nvml without-field 83; nvml without-field 185; nvml without-field 186",
        "",
    ),
];

fn each_fault() -> OnDriver {
    let cases = FAULTS.map(|(name, script, warning)| (name, (script, warning)));
    sampled().table(cases, |driver, (script, warning)| {
        let (warnings, warning) = (usize::from(!warning.is_empty()), *warning);
        driver.script(script).warnings(warnings).says([warning])
    })
}

#[test(on = each_fault())]
fn each_fault_has_one_line_and_the_program_continues() {
    let (_profiler, device, stream) = started();
    for _ in 0..3 {
        let _scope = scope!("work", stream = &stream);
        device.spin(&stream, 1_000);
    }
    let fault = told();
    let calls = |name| simulator().calls(name);
    match fault.as_str() {
        "no driver" | "mismatch" | "no device" | "lost" => wait(|| !summary().notices.is_empty()),
        _ => {
            for _ in 0..3 {
                next_sample(0);
                // The real clock moves by itself.
                let _ = simulator().advance(SECOND);
            }
            next_sample(0);
        }
    }
    let gpu = gpu(0);
    match fault.as_str() {
        "no driver" | "mismatch" | "no device" => assert_eq!(summary().gpus, []),
        "slow" => {
            assert!(calls("nvmlDeviceGetPerformanceState") > Some(2));
            assert!(gpu.temperature_peak_c.is_some());
        }
        "not supported" => {
            assert_eq!(calls("nvmlDeviceGetTemperature"), Some(1));
            assert_eq!(gpu.temperature_peak_c, None);
            assert!(gpu.power_mean_w.is_some());
        }
        "unknown code" => assert_eq!(gpu.memory_peak_bytes, None),
        "no fields" => {
            // Other functions have them.
            assert!(gpu.power_mean_w.is_some() && gpu.energy_j.is_some());
            assert!(calls("nvmlDeviceGetPowerUsage") > Some(2));
        }
        _ => {}
    }
    finish(&stream);
    assert_eq!(row("work").calls, 3);
}

const SLOW_SENSORS: &str = "clock real
    fault nvmlDeviceGetMemoryInfo always delay 3ms
    fault nvmlDeviceGetTemperature always delay 3ms
    fault nvmlDeviceGetUtilizationRates always delay 3ms";

#[test(on = sampled().script(SLOW_SENSORS).warnings(1).says(["instead of every 100 ms"]))]
fn slow_sensors_are_read_less_often_and_none_is_given_up() {
    const PERIOD: Duration = Duration::from_millis(900);
    let _profiler = init().expect("set up");
    let _device = Gpu::new(0);
    drop(scope!("work"));
    wait(|| !summary().notices.is_empty());
    // Nine milliseconds, a hundred times; on a busy machine they take longer.
    let next = || {
        let (before, began) = (gpu(0).samples, Instant::now());
        wait(|| gpu(0).samples > before);
        (gpu(0).samples - before, began.elapsed())
    };
    next();
    let (mut samples, began) = (0, Instant::now());
    while samples < 2 {
        samples += next().0;
    }
    assert!(began.elapsed() >= PERIOD, "{:?}", began.elapsed());
    tell("clear-faults; nvml device 0 temperature 93");
    wait(|| gpu(0).temperature_peak_c == Some(93.0));
    // As frequent as before.
    wait(|| next().1 < PERIOD);
}

fn unusable() -> OnDriver {
    let missing = sampled()
        .cases(["missing"])
        .env("PROFILER_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
    let old = sampled()
        .cases(["too old"])
        .installed(|of| of.without("nvmlDeviceGetUUID"));
    missing
        .says([
            "/nowhere/libnvidia-ml.so.1 cannot be loaded",
            "PROFILER_NVML_LIBRARY",
        ])
        .and(old.says(["lacks nvmlDeviceGetUUID"]))
}

#[test(on = unusable().warnings(1))]
fn a_library_that_is_missing_or_too_old_has_one_line() {
    let _profiler = init().expect("set up");
    let _device = Gpu::new(0);
    drop(scope!("work"));
    wait(|| !summary().notices.is_empty());
}

#[test(on = sampled().cases(["guard", "return", "exit"]))]
fn a_call_that_hangs_delays_neither_the_summary_nor_the_end() {
    let profiler = (told() == "guard").then(|| init().expect("set up"));
    drop(scope!("work"));
    wait(|| !summary().gpus.is_empty());
    let held = Held::call("nvmlDeviceGetPerformanceState", 1);
    held.wait();
    // It hangs to the end of the process.
    std::mem::forget(held);
    drop(scope!("work"));
    assert_eq!(summary().row("work").map(|row| row.calls), Some(2));
    if told() == "exit" {
        std::process::exit(0);
    }
    drop(profiler);
}

#[test(on = sampled().warnings(1).says(["went back"]))]
fn an_energy_counter_that_goes_back_costs_one_interval() {
    let _profiler = init().expect("set up");
    let _device = Gpu::new(0);
    drop(scope!("work"));
    let advance = |seconds: u64| simulator().advance(seconds * SECOND).expect("virtual");
    wait(|| !summary().gpus.is_empty());
    advance(10);
    let read = || {
        summary()
            .gpus
            .first()
            .and_then(|gpu| gpu.energy_j)
            .unwrap_or(0.0)
    };
    wait(|| read() > 499.0);
    let before = read();
    tell("nvml device 0 lose-energy 100000");
    wait(|| !summary().notices.is_empty());
    advance(2);
    wait(|| read() > before);
    assert!(
        (read() - before - 100.0).abs() < 1e-3,
        "{} {before}",
        read()
    );
}

fn calls_no_nvml(ran: &Ran) {
    let calls = ran.report.calls.keys();
    assert_eq!(calls.filter(|name| name.starts_with("nvml")).count(), 0);
}

#[test(on = sampled().set_up(without_an_interval).then(calls_no_nvml))]
fn without_an_interval_nvml_is_not_called() {
    let (_profiler, _device, stream) = started();
    let ((), trace) = Profile::builder().run(|_| drop(scope!("work", stream = &stream)));
    assert_eq!(trace.expect("a window").gpu_samples().count(), 0);
}
