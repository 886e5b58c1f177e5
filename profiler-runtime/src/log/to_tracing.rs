use super::{LogError, Scalar, ScalarLogger};

/// Emits a [`tracing`] event for each measurement.
///
/// The events have the level `INFO`, the target `profiler_runtime` and the fields `name`,
/// `cpu_ms` (milliseconds) and `step`; `cuda_ms` is declared and stays empty as long as nothing is
/// timed on a GPU. They are emitted when the profiler delivers the measurement, on its own thread:
/// outside the spans of the measured thread, and a little after the scope ended.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{ScalarLogger, TracingLogger};
///
/// TracingLogger.add_scalar("train/step", 12.5, 3)?;
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLogger;

impl ScalarLogger for TracingLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        emit(tag, value, step);
        Ok(())
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        emit(scalar.name, scalar.value, scalar.step);
        Ok(())
    }
}

fn emit(name: &str, cpu_ms: f64, step: u64) {
    // To the nanosecond: no clock gives more, and people read it.
    let cpu_ms = (cpu_ms * 1e6).round() / 1e6;
    tracing::info!(
        target: "profiler_runtime",
        name,
        cpu_ms,
        cuda_ms = tracing::field::Empty,
        step
    );
}
