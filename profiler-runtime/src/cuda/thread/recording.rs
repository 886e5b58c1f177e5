//! Recording an event: what both ends of a scope have in common.

use profiler_cuda_sys::driver::{Code, Event, Failed, Fault, RawContext};
use profiler_report::CudaLoss;
use profiler_report::internal::RawStream;

use super::scope::Mode;
use crate::cuda::context::Context;
use crate::cuda::ffi::{Capturing, EventApi};
use crate::cuda::resolver;

/// Makes the context of a default stream current if the stream was named: its handle means the default stream of whichever
/// context is current. An implicit default stream is that of the current context already. Returns what
/// [`EventApi::leave_context`] takes.
pub(super) fn enter_own_context(
    driver: &impl EventApi,
    context: &Context,
    is_implicit: bool,
) -> Result<Option<RawContext>, CudaLoss> {
    if is_implicit {
        return Ok(None);
    }
    driver
        .enter_context(context.raw)
        .map_err(|failed| loss_of(driver, context, failed.code, failed.call))
}

/// Returns whether events that are recorded in the stream become part of a graph.
///
/// # Errors
///
/// Returns a loss if they would, and the call did not ask for it.
#[inline(always)]
pub(super) fn is_graph(
    driver: &impl EventApi,
    context: &Context,
    stream: RawStream,
    mode: Mode,
) -> Result<bool, CudaLoss> {
    match driver.capturing(context.raw, stream) {
        Capturing::No => Ok(false),
        Capturing::Yes if mode == Mode::Captured => Ok(true),
        Capturing::Yes => Err(CudaLoss::Captured),
        Capturing::Unknown(failed) => Err(loss_of(driver, context, failed.code, failed.call)),
    }
}

/// Records an event in a stream, or makes it part of the graph that the stream captures.
///
/// # Errors
///
/// Returns why the scope has no GPU time if the driver refuses.
#[inline(always)]
pub(super) fn record(
    driver: &impl EventApi,
    context: &Context,
    event: Event,
    stream: RawStream,
    is_graph: bool,
) -> Result<(), CudaLoss> {
    match record_once(driver, event, stream, is_graph) {
        Ok(()) => Ok(()),
        Err(failed) => record_again(driver, context, event, stream, is_graph, failed),
    }
}

#[inline(always)]
fn record_once(
    driver: &impl EventApi,
    event: Event,
    stream: RawStream,
    is_graph: bool,
) -> Result<(), Failed> {
    if is_graph {
        driver.record_external(event, stream)
    } else {
        driver.record(event, stream)
    }
}

/// The second attempt of [`record`], if there is one.
#[cold]
#[inline(never)]
fn record_again(
    driver: &impl EventApi,
    context: &Context,
    event: Event,
    stream: RawStream,
    is_graph: bool,
    failed: Failed,
) -> Result<(), CudaLoss> {
    let record = || record_once(driver, event, stream, is_graph);
    driver
        .retried_after(failed, context.raw, record)
        .map_err(|failed| loss_of(driver, context, failed.code, failed.call))
}

/// Returns why a scope has no GPU time in a context that has failed or may be destroyed.
#[cold]
#[inline(never)]
pub(super) fn loss_of_faults(context: &Context) -> CudaLoss {
    if context.has_failed() {
        CudaLoss::ContextFailed
    } else {
        CudaLoss::ContextGone
    }
}

/// Returns why a scope has no GPU time after a call in its context has failed.
#[cold]
#[inline(never)]
pub(super) fn loss_of(
    driver: &impl EventApi,
    context: &Context,
    code: Code,
    call: &str,
) -> CudaLoss {
    match context.handle_error(driver, code, call) {
        Fault::Capture => CudaLoss::Captured,
        Fault::Sticky => CudaLoss::ContextFailed,
        Fault::ContextGone => {
            resolver::suspect(context);
            CudaLoss::ContextGone
        }
        Fault::NoDriver => CudaLoss::ContextGone,
        Fault::InvalidHandle => CudaLoss::InvalidHandle,
        Fault::NotPermitted => CudaLoss::HostFunction,
        Fault::Refused | Fault::NotReady => CudaLoss::DriverRefused,
    }
}
