//! The energy of a name is its share by GPU self time of what the device used, against the simulated truth: a device
//! draws 50 W, and 200 W more while work runs on it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_runtime::{init, scope};
use profiler_tests::gpu::{Gpu, Held, finish, row, settle, simulator, started};

use crate::support::samples::{gpu, next_sample, sampled, to_next_step};

const SECOND: u64 = 1_000_000_000;

/// Runs `work` between two samples: none is taken while it runs. Each time, another call hangs: one that was slow twice in
/// a row is not made any more.
fn in_one_interval(ordinal: u32, work: impl FnOnce()) {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let calls = [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPerformanceState",
        "nvmlDeviceGetCurrentClocksEventReasons",
    ];
    let held = Held::call(calls[TIMES.fetch_add(1, Relaxed) % calls.len()], 1);
    held.wait();
    work();
    settle();
    drop(held);
    next_sample(ordinal);
}

#[track_caller]
fn used(name: &str, joules: f64) {
    let energy = row(name).energy.unwrap_or_default();
    let known = energy.joules.unwrap_or(f64::NAN);
    assert!(
        (known / joules - 1.0).abs() < 1e-6,
        "{name}: {energy:?}, not {joules} J"
    );
}

#[track_caller]
fn unmeasured(ordinal: u32, joules: f64, all: f64) {
    let gpu = gpu(ordinal);
    let known = (
        gpu.unmeasured_j.unwrap_or(f64::NAN),
        gpu.energy_j.unwrap_or(f64::NAN),
    );
    let is_close = |known: f64, expected: f64| (known - expected).abs() < 1e-3;
    assert!(
        is_close(known.0, joules) && is_close(known.1, all),
        "{known:?}"
    );
}

#[test(on = sampled())]
fn joules_are_shared_out_by_gpu_self_time() {
    let _profiler = init().expect("set up");
    let device = Gpu::new(0);
    let (stream, other) = (device.stream(), device.stream());
    {
        // From here on the profiler knows the driver, and NVML's devices have numbers in CUDA.
        let _scope = scope!("short", stream = &stream);
        device.spin(&stream, 1_000);
    }
    finish(&stream);
    to_next_step();
    next_sample(0);
    let before = gpu(0);
    let (unmeasured_before, all_before) = (
        before.unmeasured_j.unwrap_or(0.0),
        before.energy_j.unwrap_or(0.0),
    );

    // Three to one, and nothing else: 4 s of 250 W.
    in_one_interval(0, || {
        for (name, seconds) in [("three", 3), ("one", 1)] {
            let _scope = scope!(name, stream = &stream);
            device.spin(&stream, seconds * SECOND);
        }
        stream.synchronize().expect("nothing failed");
    });
    used("three", 750.0);
    used("one", 250.0);
    unmeasured(0, unmeasured_before, all_before + 1_000.0);

    // Idle: 2 s of 50 W belong to no name.
    in_one_interval(0, || {
        simulator()
            .advance(2 * SECOND)
            .expect("the clock is virtual");
    });
    unmeasured(0, unmeasured_before + 100.0, all_before + 1_100.0);

    // Half of the interval is idle: of 1 s of 250 W and 1 s of 50 W, a half.
    in_one_interval(0, || {
        let scope = scope!("half", stream = &stream);
        device.spin(&stream, SECOND);
        drop(scope);
        stream.synchronize().expect("nothing failed");
        simulator().advance(SECOND).expect("the clock is virtual");
    });
    used("half", 150.0);
    unmeasured(0, unmeasured_before + 250.0, all_before + 1_400.0);

    // Two streams at the same time share 2 s of 250 W.
    in_one_interval(0, || {
        for (name, stream) in [("left", &stream), ("right", &other)] {
            let _scope = scope!(name, stream = stream);
            device.spin(stream, 2 * SECOND);
        }
        stream.synchronize().expect("nothing failed");
        other.synchronize().expect("nothing failed");
    });
    used("left", 250.0);
    used("right", 250.0);

    // Only self time counts, and too little of it has no share.
    in_one_interval(0, || {
        let _outer = scope!("outer", stream = &stream);
        device.spin(&stream, SECOND);
        {
            let _inner = scope!("inner", stream = &stream);
            device.spin(&stream, 3 * SECOND);
        }
        stream.synchronize().expect("nothing failed");
    });
    used("outer", 250.0);
    used("inner", 750.0);
    assert_eq!(row("short").energy.and_then(|energy| energy.joules), None);
}

#[test(on = sampled()
    .script("devices 2; device 1 name Second")
    .script("nvml order reversed; nvml device 0 watts 10 0"))]
fn each_device_has_its_own_energy_although_nvml_lists_them_in_another_order() {
    let _profiler = init().expect("set up");
    let devices = [Gpu::new(0), Gpu::new(1)];
    let streams = devices.each_ref().map(Gpu::stream);
    for (device, stream) in devices.iter().zip(&streams) {
        let _scope = scope!("short", stream = stream);
        device.spin(stream, 1_000);
        stream.synchronize().expect("nothing failed");
    }
    settle();
    to_next_step();
    next_sample(0);
    let before = [gpu(0), gpu(1)].map(|gpu| gpu.energy_j.unwrap_or(0.0));
    // The sampler reads the second device first.
    in_one_interval(0, || {
        for (name, place, seconds) in [("first", 0, 2), ("second", 1, 2)] {
            let stream = &streams[place];
            let _scope = scope!(name, stream = stream);
            devices[place].spin(stream, seconds * SECOND);
        }
        for stream in &streams {
            stream.synchronize().expect("nothing failed");
        }
    });
    let gpus = [gpu(0), gpu(1)];
    assert_eq!(gpus.each_ref().map(|gpu| gpu.nvml_index), [1, 0]);
    assert_eq!(gpus[1].name, "Second");
    used("first", 20.0);
    used("second", 500.0);
    for (gpu, (before, joules)) in gpus.iter().zip(before.into_iter().zip([20.0, 500.0])) {
        let all = gpu.energy_j.unwrap_or(f64::NAN);
        assert!((all - before - joules).abs() < 1e-3, "{all} {before}");
    }
}

#[test(on = sampled().scripts(["nvml device 0 mig on", "nvml device 0 processes 3"]))]
fn the_energy_of_a_device_with_mig_or_other_processes_is_not_shared_out() {
    let (_profiler, device, stream) = started();
    for _ in 0..2 {
        let scope = scope!("work", stream = &stream);
        device.spin(&stream, 5 * SECOND);
        drop(scope);
        finish(&stream);
        to_next_step();
        let before = all_samples();
        while all_samples() < before + 2 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let summary = profiler_runtime::summary();
    let gpu = summary.gpus.first().expect("the device is sampled");
    assert!(gpu.energy_j.is_some_and(|joules| joules > 0.0));
    assert!(gpu.not_shared.is_some(), "{gpu:?}");
    assert_eq!(row("work").energy, None);
}

fn all_samples() -> u64 {
    profiler_runtime::summary()
        .gpus
        .iter()
        .map(|gpu| gpu.samples)
        .sum()
}
