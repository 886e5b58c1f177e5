//! Stands in for the sampler in builds without the feature `nvml`, and on WebAssembly.

use std::time::Duration;

use crate::gpu_sample::{EnergyMark, GpuSamples};

pub(crate) fn begin(_session: Option<Duration>) {}

pub(crate) fn want(_interval: Option<Duration>) {}

pub(crate) fn last_sample() {}

pub(crate) fn shut_down() {}

pub(crate) fn energy_so_far() -> Vec<EnergyMark> {
    Vec::new()
}

pub(crate) fn samples() -> GpuSamples {
    GpuSamples::default()
}

pub(crate) fn samples_between(
    _session: Option<Duration>,
    _ends: (i64, i64),
    _before: &[EnergyMark],
) -> GpuSamples {
    GpuSamples::default()
}
