//! `sync = true`: the end of the scope waits for the device and calls the logger.

use profiler_cuda_sys::driver::Failed;
use profiler_report::{CudaLoss, TimeSource};

use super::recording::loss_of;
use crate::clock::{WallAnchor, clock};
use crate::collect::{self, next_step};
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::resolver::log_sender::cuda_span;
use crate::log_record::LogRequest;
use crate::name;

/// Waits for the scope's second event, and calls the logger with the scope's time on this thread. Takes `log` if it has
/// called the logger.
///
/// # Errors
///
/// Returns why the scope has no GPU time.
#[cold]
pub(super) fn log_now(
    driver: &impl EventApi,
    measurement: &GpuMeasurement,
    pair: Pair,
    log: &mut Option<LogRequest>,
) -> Result<(), CudaLoss> {
    let (context, scope, span) = (pair.context, measurement.scope, measurement.span);
    let wait = || {
        driver.synchronize(pair.end).ok_of("cuEventSynchronize")?;
        driver.elapsed(pair.begin, pair.end).map_err(|code| Failed {
            call: "cuEventElapsedTime",
            code,
        })
    };
    // Both calls would invalidate another thread's capture in the default capture mode.
    let ns = driver
        .relaxed(|| driver.with_context(context.raw, wait))
        .map_err(|failed| loss_of(driver, context, failed.code, failed.call))?
        .length()
        .ok_or(CudaLoss::ImpossibleTime)?;
    let (Some(log), Some(name)) = (log.take(), name::by_id(scope.name)) else {
        return Ok(());
    };
    let cuda = cuda_span(ns, None, scope.stream_key);
    let cpu_ms = clock().nanoseconds(span.elapsed.max(0) as f64) / 1e6;
    let milliseconds = match name.decide_time_source(TimeSource::Cuda) {
        TimeSource::Cuda => cuda.ms,
        _ => cpu_ms,
    };
    let automatic = || next_step(name, log.skipped, log.every);
    let entry = collect::LogEntry {
        name,
        milliseconds,
        cpu_ms,
        cuda: Some(cuda),
        step: log.step.unwrap_or_else(automatic),
        wall_time: WallAnchor::now().wall_time(span.end),
    };
    collect::log_here(entry, log.logger);
    Ok(())
}
