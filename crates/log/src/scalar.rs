//! A measurement, as a logger receives it.

use std::time::SystemTime;

use profiler_report::StreamId;

/// One measurement, as a logger receives it.
///
/// # Examples
///
/// ```
/// use std::time::SystemTime;
///
/// use profiler_log::Scalar;
///
/// let scalar = Scalar::new("model/forward/cpu_ms", 1.25, 7, SystemTime::now());
/// assert_eq!(scalar.tag, "model/forward/cpu_ms");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scalar<'a> {
    /// The tag: the path of the name without the crate, then `cpu_ms` or `cuda_ms`, which says what `value` is.
    ///
    /// Its parts are separated by `/`. Viewers group measurements by the first one: `Trainer/forward/cuda_ms`.
    pub tag: &'a str,
    /// The duration in milliseconds: the GPU time if the name has GPU times, else the CPU time. All values of one name
    /// are of the same kind.
    pub value: f64,
    /// The step: `global_step` if one was given, else the number of the call, counted from 0 for each name.
    pub step: u64,
    /// When the measured scope ended.
    pub wall_time: SystemTime,
    /// The name of the measurement, as the summary shows it.
    pub name: &'a str,
    /// The duration on the CPU in milliseconds.
    pub cpu_ms: f64,
    /// The duration on the GPU, if there is one.
    pub cuda: Option<CudaSpan>,
}

/// The GPU time of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CudaSpan {
    /// The time between the two events of the scope in milliseconds, with a resolution of half a microsecond; the sum of such
    /// times if streams were bound to the scope.
    pub ms: f64,
    /// When the work began, if known.
    pub start: Option<SystemTime>,
    /// The uncertainty of `start` in nanoseconds. It does not affect `ms`.
    pub uncertainty_ns: Option<f64>,
    /// The stream on which the time was measured; the first of several.
    pub stream: StreamId,
}

impl CudaSpan {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        ms: f64,
        start: Option<SystemTime>,
        uncertainty_ns: Option<f64>,
        stream: StreamId,
    ) -> Self {
        Self {
            ms,
            start,
            uncertainty_ns,
            stream,
        }
    }
}

impl<'a> Scalar<'a> {
    /// Creates a measurement of `value` milliseconds on the CPU, with its tag as the name.
    #[must_use]
    pub fn new(tag: &'a str, value: f64, step: u64, wall_time: SystemTime) -> Self {
        Self {
            tag,
            value,
            step,
            wall_time,
            name: tag,
            cpu_ms: value,
            cuda: None,
        }
    }
}
