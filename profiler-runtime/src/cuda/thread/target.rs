//! Decides which stream a scope is measured on.

use profiler_cuda_sys::driver::{Code, Fault, RawContext, RawStream};

use super::state::GpuThread;
use crate::config::ImplicitStream;
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
    /// `PROFILER_CUDA_STREAM`: libtorch has not been asked yet.
    Libtorch { allows_legacy: bool },
}

/// Why a scope cannot be measured on its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced {
    /// No context is current.
    NoContext,
    /// libtorch names no stream, or one that is refused.
    NoStream,
    /// The driver does not tell which context is current.
    Refused(Code),
}

impl Target {
    /// Fills in the current context if the stream has none of its own, and the stream if libtorch knows it.
    ///
    /// # Errors
    ///
    /// Returns what is not known.
    #[inline(always)]
    pub(crate) fn in_context(self, driver: &impl EventApi) -> Result<Self, Unplaced> {
        if self.handles.context == RawContext::NONE {
            return self.in_current_context(driver);
        }
        Ok(self)
    }

    #[inline(never)]
    fn in_current_context(mut self, driver: &impl EventApi) -> Result<Self, Unplaced> {
        self.handles.context = match driver.current_context() {
            Ok(RawContext::NONE) => return Err(Unplaced::NoContext),
            // Without an initialised driver there is no context either.
            Err(code) if code.fault() == Fault::NoDriver => return Err(Unplaced::NoContext),
            Ok(context) => context,
            Err(code) => return Err(Unplaced::Refused(code)),
        };
        if let NamedBy::Libtorch { allows_legacy } = self.named_by {
            let stream = libtorch::current_stream(allows_legacy);
            self.handles.stream = stream.ok_or(Unplaced::NoStream)?;
            self.named_by = NamedBy::Settings;
        }
        Ok(self)
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
        let (stream, named_by) = match library::implicit_stream() {
            ImplicitStream::None => return None,
            ImplicitStream::Legacy => (RawStream::LEGACY, NamedBy::Settings),
            ImplicitStream::PerThread => (RawStream::PER_THREAD, NamedBy::Settings),
            asked => {
                let allows_legacy = asked == ImplicitStream::LibtorchOrLegacy;
                (RawStream::LEGACY, NamedBy::Libtorch { allows_legacy })
            }
        };
        let context = RawContext::NONE;
        (StreamHandles { stream, context }, named_by)
    };
    Some(Target { handles, named_by })
}
