//! The second event of a pair, which is recorded when its scope ends.

use profiler_report::CudaLoss;
use profiler_report::internal::{RawStream, StreamKey};

use super::record_times;
use super::recording::{enter_own_context, is_graph, loss_of_faults, record};
use super::scope::{CostSampling, Mode};
use crate::cuda::context::measurement::Pair;
use crate::cuda::ffi::EventApi;
use crate::cuda::resolver;

/// Records the second event of a pair.
///
/// # Errors
///
/// Returns why the scope has no GPU time if the event cannot be recorded.
// Takes each value as an argument: a struct of them would be built in memory for `record_specially`, also on the usual path.
#[inline(always)]
pub(super) fn record_end(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    (stream_key, is_implicit): (&StreamKey, bool),
    mode: Mode,
    sampling: CostSampling,
) -> Result<(), CudaLoss> {
    let (context, stream) = (pair.context, stream_key.stream);
    if !context.is_sound() || pair.epoch != context.epoch() {
        return Err(loss_of_faults(context));
    }
    if stream.is_default() || pair.is_graph {
        let named = (stream_key, is_implicit);
        return record_specially(number, driver, pair, named, mode, sampling);
    }
    check_epoch(driver, pair)?;
    let begun = record_times::begin(sampling);
    let recorded = record(driver, context, pair.end, stream, false);
    record_times::end(begun);
    recorded?;
    // Another thread may begin a capture between any two calls. If the check came first, the capture could begin
    // after it and include the event, and the resolver's query of the event would invalidate the capture. Recording
    // adds no node to a graph. After the record, the answer that the stream does not capture means that the scope's
    // events are not part of a capture, or of one that has ended: querying them does no harm.
    check_capture(driver, pair, stream, mode)
}

/// [`record_end`] on a default stream, or in a graph.
#[inline(never)]
fn record_specially(
    number: u32,
    driver: &impl EventApi,
    pair: &Pair,
    (stream_key, is_implicit): (&StreamKey, bool),
    mode: Mode,
    sampling: CostSampling,
) -> Result<(), CudaLoss> {
    let (context, stream) = (pair.context, stream_key.stream);
    if stream.is_per_thread() && number != stream_key.thread {
        return Err(CudaLoss::OtherThread);
    }
    // A context that is not current any more may have been destroyed, with its default stream.
    if is_implicit && driver.current_context() != Ok(context.raw) {
        return Err(CudaLoss::OtherContext);
    }
    check_epoch(driver, pair)?;
    let before = if stream.is_default() {
        enter_own_context(driver, context, is_implicit)?
    } else {
        None
    };
    let recorded = record_in_own_context(driver, pair, stream, mode, sampling);
    driver.leave_context(before);
    recorded
}

/// Checks that the context is the one in which the pair's events were made.
#[inline(always)]
fn check_epoch(driver: &impl EventApi, pair: &Pair) -> Result<(), CudaLoss> {
    let context = pair.context;
    // The device may have been reset inside the scope.
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    // Again, after the id: since the first comparison the resolver may have advanced the epoch, and another thread may
    // have adopted the new id. The id is then right, and the event is one of the epoch before. See `Epoch`.
    if pair.epoch != context.epoch() {
        return Err(CudaLoss::ContextGone);
    }
    Ok(())
}

fn record_in_own_context(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
    sampling: CostSampling,
) -> Result<(), CudaLoss> {
    // Recording in the legacy default stream would invalidate captures of blocking streams, and the event of a graph
    // can be recorded in a capture only.
    let checks_first = pair.is_graph || stream == RawStream::LEGACY;
    if checks_first {
        check_capture(driver, pair, stream, mode)?;
    }
    let begun = record_times::begin(sampling);
    let recorded = record(driver, pair.context, pair.end, stream, pair.is_graph);
    record_times::end(begun);
    recorded?;
    // Otherwise it is checked last: another thread may begin a capture between a check and the record.
    if checks_first {
        Ok(())
    } else {
        check_capture(driver, pair, stream, mode)
    }
}

/// Checks that the end of a scope is part of a graph if its beginning is.
#[inline(always)]
fn check_capture(
    driver: &impl EventApi,
    pair: &Pair,
    stream: RawStream,
    mode: Mode,
) -> Result<(), CudaLoss> {
    match is_graph(driver, pair.context, stream, mode)? {
        is_graph if is_graph == pair.is_graph => Ok(()),
        _ => Err(CudaLoss::Captured),
    }
}
