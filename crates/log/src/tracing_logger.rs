use super::{LogError, Scalar, ScalarLogger};

/// Emits a [`tracing`] event for each measurement.
///
/// The events have the level `INFO`, the target `profiler_runtime` and the fields `name`, `cpu_ms`, `cuda_ms` (absent
/// without a GPU time) and `step`. The times have the names and the unit that the tags of other loggers end with. They
/// are emitted when the profiler delivers the measurement, on its own thread: outside of the spans
/// of the measured thread, and shortly after the scope ended.
///
/// # Examples
///
/// ```
/// use profiler_log::{ScalarLogger, TracingLogger};
///
/// TracingLogger.add_scalar("train/step", 12.5, 3)?;
/// # Ok::<(), profiler_log::LogError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLogger;

impl ScalarLogger for TracingLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        emit(tag, value, None, step);
        Ok(())
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        let cuda_ms = scalar.cuda.map(|cuda| cuda.ms);
        emit(scalar.name, scalar.cpu_ms, cuda_ms, scalar.step);
        Ok(())
    }
}

fn emit(name: &str, cpu_ms: f64, cuda_ms: Option<f64>, step: u64) {
    // Rounded to nanoseconds, the finest resolution of any clock, so that the numbers are readable.
    let rounded = |ms: f64| (ms * 1e6).round() / 1e6;
    tracing::info!(
        target: "profiler_runtime",
        name,
        cpu_ms = rounded(cpu_ms),
        cuda_ms = cuda_ms.map(rounded),
        step
    );
}
