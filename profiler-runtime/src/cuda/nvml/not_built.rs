//! Stands in for the sampler in builds without the feature `cuda`, and on WebAssembly.

use std::time::Duration;

use profiler_host::diagnostics;
use profiler_report::internal::GpuSamples;

use crate::switch::{NEVER_MEASURES, with_control};

/// Warns once if code asks for samples. Of `PROFILER_GPU_SAMPLES`, the settings warn.
pub(crate) fn begin(session: Option<Duration>) {
    let (run, is_of_environment) = with_control(|control| {
        let settings = &control.settings;
        let of_environment = &settings.from_environment;
        (
            settings.gpu_samples,
            of_environment.contains(&"PROFILER_GPU_SAMPLES"),
        )
    });
    let run = run.filter(|_| !is_of_environment);
    if !cfg!(feature = "cuda") && !NEVER_MEASURES && run.or(session).is_some() {
        diagnostics::warn_once(
            "`gpu_samples` has no effect, since profiler-runtime was built without its feature `cuda`: there are no samples \
             of the GPU; build it with the feature",
        );
    }
}

pub(crate) fn want(_interval: Option<Duration>) {}

pub(crate) fn window_opened(_at: u64) {}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosingSample;

pub(crate) fn window_closed(_at: u64) -> Option<ClosingSample> {
    None
}

impl ClosingSample {
    #[allow(clippy::unused_self, reason = "it is that of the other variant")]
    pub(crate) fn has_come(self) -> bool {
        true
    }
}

pub(crate) fn last_sample() {}

pub(crate) fn shut_down() {}

pub(crate) fn samples() -> GpuSamples {
    GpuSamples::default()
}

pub(crate) fn samples_between(
    _session: Option<Duration>,
    _ends: (i64, i64),
    _ticks: (u64, u64),
) -> GpuSamples {
    GpuSamples::default()
}
