//! Recording an event: what both ends of a scope have in common.

use super::scope::Mode;
use crate::cuda::context::Context;
use crate::cuda::ffi::code::{Code, Failed, Fault};
use crate::cuda::ffi::driver::{Event, RawContext};
use crate::cuda::ffi::{Capturing, EventApi};
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver;
use crate::stream_key::RawStream;

/// Makes the stream's own context current if the stream is a default one that was named: its handle means the default
/// stream of whichever context is current. An implicit default stream is that of the current context already. Returns
/// what [`EventApi::leave_context`] takes.
// Not with a closure for what happens in between, which the compiler does not always inline.
#[inline(always)]
pub(super) fn enter_own_context(
    driver: &impl EventApi,
    context: &Context,
    stream: RawStream,
    is_implicit: bool,
) -> Result<Option<RawContext>, CudaLoss> {
    if is_implicit || !stream.is_default() {
        return Ok(None);
    }
    enter(driver, context)
}

#[cold]
#[inline(never)]
fn enter(driver: &impl EventApi, context: &Context) -> Result<Option<RawContext>, CudaLoss> {
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
#[inline(always)]
pub(super) fn record(
    driver: &impl EventApi,
    context: &Context,
    event: Event,
    stream: RawStream,
    is_graph: bool,
) -> Result<(), Failed> {
    driver.retried_in(context.raw, || {
        if is_graph {
            driver.record_external(event, stream)
        } else {
            driver.record(event, stream)
        }
    })
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
