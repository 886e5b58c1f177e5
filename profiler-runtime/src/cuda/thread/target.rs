//! Decides which stream a scope is measured on.

use profiler_cuda_sys::driver::{Code, Fault, RawContext};

use super::state::GpuThread;
use crate::cuda::ffi::{EventApi, library};
use crate::cuda::stream::{StreamHandles, default, libtorch};

/// The stream that a scope is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) handles: StreamHandles,
    pub(crate) named_by: NamedBy,
}

/// The way in which a scope's stream was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// The call.
    Call,
    /// The thread: its current stream.
    Thread,
    /// The process: its default stream.
    Process,
    /// `PROFILER_CUDA_STREAM`: a default stream of the driver, or what libtorch launches on, in the context that is current.
    Settings,
}

impl Target {
    /// Fills in the current context if the stream has none of its own, and the stream if libtorch knows it. Returns `Ok(None)`
    /// if no context is current.
    ///
    /// # Errors
    ///
    /// Returns the driver's code if it does not tell which context is current, and `None` if libtorch names no stream, or one
    /// that is refused.
    #[inline(always)]
    pub(crate) fn in_context(
        mut self,
        driver: &impl EventApi,
    ) -> Result<Option<Self>, Option<Code>> {
        if self.handles.context == RawContext::NONE {
            self.handles.context = current(driver).map_err(Some)?;
            if self.named_by == NamedBy::Settings
                && self.handles.context != RawContext::NONE
                && let Some(allows_legacy) = library::asks_libtorch()
            {
                self.handles.stream = libtorch::current_stream(allows_legacy).ok_or(None)?;
            }
        }
        Ok((self.handles.context != RawContext::NONE).then_some(self))
    }
}

impl NamedBy {
    /// Returns `true` for a stream in whichever context is current.
    #[inline]
    pub(crate) fn is_implicit(self) -> bool {
        self == Self::Settings
    }

    /// Returns `true` if neither the call nor its thread named the stream.
    #[inline]
    pub(crate) fn is_fallback(self) -> bool {
        matches!(self, Self::Process | Self::Settings)
    }
}

/// Returns the context that is current on this thread.
#[inline(never)]
fn current(driver: &impl EventApi) -> Result<RawContext, Code> {
    match driver.current_context() {
        // Without an initialised driver there is no context either.
        Err(code) if code.fault() == Fault::NoDriver => Ok(RawContext::NONE),
        answer => answer,
    }
}

/// Returns the stream that the call names, else the thread's current stream, else the default stream of the process,
/// else the one that the settings ask for. Calls neither the driver nor libtorch.
#[inline(always)]
pub(crate) fn target(thread: &GpuThread, explicit: Option<StreamHandles>) -> Option<Target> {
    let (handles, named_by) = if let Some(explicit) = explicit {
        (explicit, NamedBy::Call)
    } else if let Some(current) = thread.current() {
        (current.handles, NamedBy::Thread)
    } else if let Some(default) = default::get() {
        (default.handles, NamedBy::Process)
    } else {
        let handles = StreamHandles {
            stream: library::implicit_stream()?,
            context: RawContext::NONE,
        };
        (handles, NamedBy::Settings)
    };
    Some(Target { handles, named_by })
}
