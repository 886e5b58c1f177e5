//! The driver calls that measure GPU time: the seam where tests replace the driver.

use profiler_cuda_sys::driver::{
    CaptureMode, CaptureStatus, Code, Event, Failed, Fault, RawContext,
};
use profiler_report::internal::RawStream;

use super::elapsed::Elapsed;

/// The result of [`EventApi::capturing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capturing {
    /// Nothing is captured: an event can be recorded.
    No,
    /// The stream captures, its capture has been invalidated, or recording would invalidate another stream's capture.
    Yes,
    /// The driver did not answer.
    Unknown(Failed),
}

/// The driver calls that measure GPU time.
///
/// [`Driver`](profiler_cuda_sys::driver::Driver) implements it with the real driver, and the tests' `FakeDriver` without one. All
/// callers are generic over it, so that a call costs what a direct one does.
///
/// The required methods are one driver function each. The provided ones add what the profiler needs around them.
pub(crate) trait EventApi {
    /// Returns the name of a code, as `CUDA_ERROR_NO_DEVICE`, or `CUDA error N` if the driver has none.
    fn name_of(&self, code: Code) -> String;

    /// Returns the context that is current on this thread, or [`RawContext::NONE`].
    fn current_context(&self) -> Result<RawContext, Code>;

    /// Returns the ordinal of the current context's device.
    fn current_device(&self) -> Option<u32>;

    /// Makes a context current on this thread.
    fn set_context(&self, context: RawContext) -> Code;

    /// Retains the current context if it is its device's primary context. Returns `true` if it is.
    fn retain_if_primary(&self, context: RawContext) -> Result<bool, Code>;

    /// Returns `true` if the driver numbers its contexts, so that a destroyed context can be recognised.
    fn has_context_ids(&self) -> bool;

    /// Returns the number of a context, which no other context of the process ever has; `None` if the driver is too old
    /// to number them. Callers use [`context_id`](Self::context_id).
    fn read_context_id(&self, context: RawContext) -> Option<Result<u64, Failed>>;

    /// Sets how this thread takes part in captures. Returns the mode before, or `None` if the driver refused.
    fn exchange_capture_mode(&self, mode: CaptureMode) -> Option<CaptureMode>;

    /// Creates a stream of the current context that waits for no other stream.
    fn create_stream(&self) -> Result<RawStream, Failed>;

    /// Destroys a stream from [`create_stream`](Self::create_stream).
    fn destroy_stream(&self, stream: RawStream);

    /// Returns the state of a stream's capture. Callers use [`capturing`](Self::capturing).
    fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failed>;

    /// Returns the state and the number of a stream's capture; `None` if the driver does not number captures. Callers
    /// use [`capture_id`](Self::capture_id).
    fn capture_info(&self, stream: RawStream) -> Option<Result<(CaptureStatus, u64), Failed>>;

    /// Creates an event of the current context that keeps time.
    fn create_event(&self) -> Result<Event, Failed>;

    /// Destroys an event.
    fn destroy_event(&self, event: Event);

    /// Records an event in a stream. Does not wait for the device.
    fn record(&self, event: Event, stream: RawStream) -> Result<(), Failed>;

    /// Records an event in a capturing stream such that each replay of the graph records it again. Fails if the driver
    /// is too old to do so.
    fn record_external(&self, event: Event, stream: RawStream) -> Result<(), Failed>;

    /// Returns [`Code::SUCCESS`] if the device has passed an event, or if the event was never recorded.
    fn query(&self, event: Event) -> Code;

    /// Waits until the device has passed an event.
    fn synchronize(&self, event: Event) -> Code;

    /// Returns the time between two events that the device has passed. The resolution is half a microsecond, and the 24
    /// significant bits of the driver's floating point number.
    fn elapsed(&self, from: Event, to: Event) -> Result<Elapsed, Code>;

    /// Returns the nanoseconds from one event to another, in whichever order the device has passed them; `None` if the
    /// driver cannot tell.
    fn distance(&self, from: Event, to: Event) -> Option<f64> {
        self.elapsed(from, to).ok()?.distance()
    }

    /// Runs `f` with a context current on this thread, then makes the context before current again.
    fn with_context<T>(
        &self,
        context: RawContext,
        f: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let before = self.enter_context(context)?;
        let result = f();
        self.leave_context(before);
        result
    }

    /// Makes a context current on this thread. Returns what [`leave_context`](Self::leave_context) takes: the context
    /// before, if it was another one.
    fn enter_context(&self, context: RawContext) -> Result<Option<RawContext>, Failed> {
        let failed = |call| move |code| Failed { call, code };
        let before = self.current_context().map_err(failed("cuCtxGetCurrent"))?;
        if before == context {
            return Ok(None);
        }
        let set = self.set_context(context).ok_of("cuCtxSetCurrent");
        // Also after an error: the driver may report an earlier failure and set the context nevertheless.
        set.inspect_err(|_| self.leave_context(Some(before)))?;
        Ok(Some(before))
    }

    /// Makes the context before current again. An error is ignored: that context was current a moment ago.
    #[inline]
    fn leave_context(&self, before: Option<RawContext>) {
        if let Some(before) = before {
            let _ = self.set_context(before);
        }
    }

    /// Calls `call`; if the driver answers that the thread needs a current context (201), calls it again with `context`
    /// current.
    ///
    /// CUDA does not document which calls on a stream or an event need a current context, and drivers differ. So every
    /// such call that the profiler makes without having set the context goes through here, or through
    /// [`retried_after`](Self::retried_after).
    #[inline(always)]
    fn retried_in<T>(
        &self,
        context: RawContext,
        call: impl Fn() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        call().or_else(|failed| self.retried_after(failed, context, call))
    }

    /// [`retried_in`](Self::retried_in), after the first attempt has failed.
    // A measured call that makes the first attempt itself has nothing in memory unless that fails.
    #[cold]
    #[inline(never)]
    fn retried_after<T>(
        &self,
        failed: Failed,
        context: RawContext,
        call: impl Fn() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        if failed.code == Code::INVALID_CONTEXT {
            self.with_context(context, call)
        } else {
            Err(failed)
        }
    }

    /// Returns the number of a context, which no other context of the process ever has; `None` if the driver is too old
    /// to number them.
    #[inline(always)]
    fn context_id(&self, context: RawContext) -> Option<Result<u64, Code>> {
        let id = self.read_context_id(context)?;
        Some(id.or_else(|failed| self.context_id_after(failed, context)))
    }

    /// [`context_id`](Self::context_id), after the first attempt has failed.
    #[cold]
    #[inline(never)]
    fn context_id_after(&self, failed: Failed, context: RawContext) -> Result<u64, Code> {
        let read = || {
            self.read_context_id(context).unwrap_or(Err(Failed {
                call: "cuCtxGetId",
                code: Code::NOT_SUPPORTED,
            }))
        };
        self.retried_after(failed, context, read)
            .map_err(|failed| failed.code)
    }

    /// Returns whether an event can be recorded in a stream without becoming part of a capture or invalidating one.
    #[inline(always)]
    fn capturing(&self, context: RawContext, stream: RawStream) -> Capturing {
        match self.capture_status(stream) {
            Ok(CaptureStatus::NONE) => Capturing::No,
            Ok(_) => Capturing::Yes,
            Err(failed) => self.capturing_after(failed, context, stream),
        }
    }

    /// [`capturing`](Self::capturing), after the first attempt has failed.
    #[cold]
    #[inline(never)]
    fn capturing_after(&self, failed: Failed, context: RawContext, stream: RawStream) -> Capturing {
        match self.retried_after(failed, context, || self.capture_status(stream)) {
            Ok(CaptureStatus::NONE) => Capturing::No,
            Ok(_) => Capturing::Yes,
            Err(failed) if failed.code.fault() == Fault::Capture => Capturing::Yes,
            Err(failed) => Capturing::Unknown(failed),
        }
    }

    /// Returns the number of a stream's capture, which no other capture has; `None` if the stream does not capture, or
    /// the driver does not number captures.
    fn capture_id(&self, context: RawContext, stream: RawStream) -> Option<u64> {
        const NOT_NUMBERED: Failed = Failed {
            call: "cuStreamGetCaptureInfo",
            code: Code::NOT_SUPPORTED,
        };
        let read = || self.capture_info(stream).unwrap_or(Err(NOT_NUMBERED));
        let (status, id) = self.retried_in(context, read).ok()?;
        (status == CaptureStatus::ACTIVE).then_some(id)
    }

    /// Runs `f` in [`CaptureMode::RELAXED`]. In the default mode, a call that is forbidden during captures would
    /// invalidate the captures of other threads.
    fn relaxed<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.exchange_capture_mode(CaptureMode::RELAXED);
        let result = f();
        if let Some(before) = before {
            self.exchange_capture_mode(before);
        }
        result
    }

    /// Puts this thread into [`CaptureMode::RELAXED`] until it ends. For threads of the profiler.
    fn relax_permanently(&self) {
        self.exchange_capture_mode(CaptureMode::RELAXED);
    }
}
