//! Samples of devices in the TensorBoard log of the run.

use profiler_report::{GpuDevice, GpuSample};

/// Writes the readings of a sample to the log that the settings ask for, if any. `number` is the step. Called on the
/// thread of the sampler, which may wait for the disk.
pub(crate) fn log_gpu_sample(device: &GpuDevice, sample: &GpuSample, number: u64) {
    use super::defaults;
    use profiler_host::diagnostics::warn_once;

    let Some(log) = defaults::of_the_settings() else {
        return;
    };
    if let Err(error) = write(&*log, device, sample, number) {
        warn_once(&format!(
            "samples of the GPU are missing from the log: {error}"
        ));
    }
}

/// Writes all readings, and flushes them. If the log refuses some, the others are still written; returns the first
/// error.
fn write(
    log: &dyn profiler_log::ScalarLogger,
    device: &GpuDevice,
    sample: &GpuSample,
    number: u64,
) -> Result<(), profiler_log::LogError> {
    let mut outcome = Ok(());
    for (tag, value) in sample.scalars(device) {
        let scalar = profiler_log::Scalar::new(&tag, value, number, sample.wall_time());
        outcome = outcome.and(log.add(&scalar));
    }
    outcome.and(log.flush())
}
