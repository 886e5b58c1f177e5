//! Which stream a scope is measured on, and who says so.

use super::default;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Code, Fault};
use crate::cuda::ffi::driver::RawContext;
use crate::cuda::stream::StreamHandles;
use crate::cuda::thread::state::Thread;

/// What a scope is measured on.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) raw: StreamHandles,
    pub(crate) named_by: NamedBy,
}

/// Who says which stream a scope is measured on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    Call,
    Thread,
    /// The default stream of the process.
    Process,
    /// `PROFILER_CUDA_STREAM`: a default stream of the driver's, in whichever context is current.
    Settings,
}

impl Target {
    /// With its context, where that is the one that is current; none where none is. The error is what the driver said
    /// to being asked.
    #[inline]
    pub(crate) fn in_context(mut self, driver: &impl EventApi) -> Result<Option<Self>, Code> {
        if self.raw.context == RawContext::NONE {
            self.raw.context = match driver.current_context() {
                // It is not there yet, or not any more, and no context either.
                Err(code) if code.fault() == Fault::NoDriver => RawContext::NONE,
                answer => answer?,
            };
        }
        Ok((self.raw.context != RawContext::NONE).then_some(self))
    }

    /// Whether it is on the driver's default stream of whichever context is current.
    pub(crate) fn is_implicit(self) -> bool {
        self.named_by == NamedBy::Settings
    }

    /// Whether neither the call nor its thread named the stream.
    pub(crate) fn is_fallback(self) -> bool {
        matches!(self.named_by, NamedBy::Process | NamedBy::Settings)
    }
}

/// The stream of the call, else of the thread, else of the process, else the one that the settings ask for. Its
/// context is none where it is the one that is current. The driver is not asked.
#[inline]
pub(crate) fn target(thread: &Thread, given: Option<StreamHandles>) -> Option<Target> {
    let (raw, named_by) = if let Some(given) = given {
        (given, NamedBy::Call)
    } else if let Some(current) = thread.current() {
        (current.raw, NamedBy::Thread)
    } else if let Some(default) = default::get() {
        (default.raw, NamedBy::Process)
    } else {
        let raw = StreamHandles {
            stream: default::implicit()?,
            context: RawContext::NONE,
        };
        (raw, NamedBy::Settings)
    };
    Some(Target { raw, named_by })
}
