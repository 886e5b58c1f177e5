//! Samples of devices in the TensorBoard log of the run.

use crate::gpu_sample::{GpuDevice, GpuSample};

/// Writes the readings of a sample to the log that the settings ask for, if any. `number` is the step. Called on the
/// thread of the sampler, which may wait for the disk.
#[cfg(feature = "tensorboard")]
pub(crate) fn log_gpu_sample(device: &GpuDevice, sample: &GpuSample, number: u64) {
    use super::defaults;
    use crate::diagnostics::warn_once;

    let Some(log) = defaults::of_the_settings() else {
        return;
    };
    if let Err(error) = write(&*log, device, sample, number) {
        warn_once(&format!(
            "samples of the GPU are missing from the log: {error}"
        ));
    }
}

#[cfg(not(feature = "tensorboard"))]
pub(crate) fn log_gpu_sample(_device: &GpuDevice, _sample: &GpuSample, _number: u64) {}

/// Writes all readings, and flushes them. If the log refuses some, the others are still written; returns the first
/// error.
#[cfg(feature = "tensorboard")]
fn write(
    log: &dyn crate::log::ScalarLogger,
    device: &GpuDevice,
    sample: &GpuSample,
    number: u64,
) -> Result<(), crate::log::LogError> {
    let mut outcome = Ok(());
    for (tag, value) in sample.scalars(device) {
        let scalar = crate::log::Scalar::new(&tag, value, number, sample.wall_time());
        outcome = outcome.and(log.add(&scalar));
    }
    outcome.and(log.flush())
}
