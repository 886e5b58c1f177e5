//! Programs whose GPUs are sampled by the NVML that is part of the simulated driver.

use std::time::Duration;

use profiler_runtime::report::SampledGpu;
use profiler_runtime::summary;
use profiler_tests::gpu::{OnDriver, driver, simulator};

/// Has the GPUs be sampled as often as possible. The loader finds the driver's file by this name.
pub(crate) fn sampled() -> OnDriver {
    driver()
        .env("PROFILER_NVML_LIBRARY", "libcuda.so.1")
        .env("PROFILER_GPU_SAMPLES", "100ms")
}

pub(crate) fn gpu(ordinal: u32) -> SampledGpu {
    let gpus = summary().gpus;
    let known = gpus.into_iter().find(|gpu| gpu.ordinal == Some(ordinal));
    known.unwrap_or_default()
}

/// Waits until a sample that begins from now on is stored.
pub(crate) fn next_sample(ordinal: u32) -> SampledGpu {
    let before = gpu(ordinal).samples;
    // The first one may have begun before.
    wait(|| gpu(ordinal).samples >= before + 2);
    gpu(ordinal)
}

/// Waits until something holds. The time limit is that of the test.
pub(crate) fn wait(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Moves the clock to the next step of the energy counters.
pub(crate) fn to_next_step() {
    const STEP: u64 = 100_000_000;
    let simulator = simulator();
    let now = simulator.report().expect("a report").now;
    simulator
        .advance(STEP - now % STEP)
        .expect("the clock is virtual");
}
