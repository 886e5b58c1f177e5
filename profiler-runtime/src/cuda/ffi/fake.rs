//! A driver for unit tests: a device whose clock and whose errors the test sets.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ptr;

use profiler_cuda_sys::driver::{CaptureMode, CaptureStatus, Code, Event, Failed, RawContext};
use profiler_report::internal::RawStream;

use super::EventApi;
use super::elapsed::Elapsed;

/// A driver with one device. Each recorded event gets the time that [`set_time`](Self::set_time) has set.
#[derive(Debug)]
pub(crate) struct FakeDriver(RefCell<State>);

#[derive(Debug)]
struct State {
    current: RawContext,
    context_id: Option<u64>,
    before_id: BeforeId,
    capture: (CaptureStatus, u64),
    mode: CaptureMode,
    /// The time on the device, in milliseconds.
    now: f32,
    is_held: bool,
    handles: usize,
    events: HashMap<Event, EventState>,
    /// Events that the device passes after this many further reads of times.
    scheduled: Vec<(usize, Event, f32)>,
    errors: HashMap<&'static str, Code>,
    calls: HashMap<&'static str, usize>,
}

/// Called before the driver next tells the number of a context.
#[derive(Default)]
struct BeforeId(Option<Box<dyn FnOnce()>>);

impl fmt::Debug for BeforeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BeforeId").field(&self.0.is_some()).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum EventState {
    NeverRecorded,
    /// Recorded, and not yet passed by the device.
    Pending,
    /// The device has passed it at this time, in milliseconds.
    Passed(f32),
}

/// Returns the event with a handle, which no driver has made.
pub(crate) fn event(handle: usize) -> Event {
    Event(ptr::without_provenance_mut(handle))
}

impl FakeDriver {
    /// A driver with numbered contexts, of which none is current, and without captures.
    pub(crate) fn new() -> Self {
        Self(RefCell::new(State {
            current: RawContext::NONE,
            context_id: Some(1),
            before_id: BeforeId::default(),
            capture: (CaptureStatus::NONE, 0),
            mode: CaptureMode(0),
            now: 0.0,
            is_held: false,
            handles: 0,
            events: HashMap::new(),
            scheduled: Vec::new(),
            errors: HashMap::new(),
            calls: HashMap::new(),
        }))
    }

    /// Sets the device's time.
    pub(crate) fn set_time(&self, milliseconds: f32) {
        self.0.borrow_mut().now = milliseconds;
    }

    /// Has the device pass no event from now on.
    pub(crate) fn hold(&self) {
        self.0.borrow_mut().is_held = true;
    }

    /// Has the device pass all pending events now, and later ones at once.
    pub(crate) fn release(&self) {
        let mut state = self.0.borrow_mut();
        let now = state.now;
        state.is_held = false;
        let pending = state
            .events
            .values_mut()
            .filter(|event| **event == EventState::Pending);
        pending.for_each(|event| *event = EventState::Passed(now));
    }

    /// Sets when the device has passed an event, in milliseconds.
    pub(crate) fn pass(&self, event: Event, milliseconds: f32) {
        let passed = EventState::Passed(milliseconds);
        self.0.borrow_mut().events.insert(event, passed);
    }

    /// As [`pass`](Self::pass), after `reads` further calls of `cuEventElapsedTime`: between two calls of the code
    /// under test.
    pub(crate) fn pass_after(&self, reads: usize, event: Event, milliseconds: f32) {
        let mut state = self.0.borrow_mut();
        state.scheduled.push((reads, event, milliseconds));
    }

    fn pass_scheduled(&self) {
        let mut state = self.0.borrow_mut();
        let scheduled = std::mem::take(&mut state.scheduled);
        for (reads, event, milliseconds) in scheduled {
            if reads == 0 {
                let passed = EventState::Passed(milliseconds);
                state.events.insert(event, passed);
            } else {
                state.scheduled.push((reads - 1, event, milliseconds));
            }
        }
    }

    /// Has each call of a driver function return `code` until it is [repaired](Self::repair).
    pub(crate) fn break_call(&self, call: &'static str, code: u32) {
        self.0.borrow_mut().errors.insert(call, Code(code));
    }

    pub(crate) fn repair(&self, call: &'static str) {
        self.0.borrow_mut().errors.remove(call);
    }

    /// Sets the number that every context has; `None` for a driver that does not number them.
    pub(crate) fn set_context_id(&self, id: Option<u64>) {
        self.0.borrow_mut().context_id = id;
    }

    /// Calls `f` before the driver next tells the number of a context, as another thread may act at that moment.
    pub(crate) fn before_context_id(&self, f: impl FnOnce() + 'static) {
        self.0.borrow_mut().before_id.0 = Some(Box::new(f));
    }

    /// Has every stream capture from now on, or none for capture zero.
    pub(crate) fn set_capture(&self, id: u64) {
        let status = if id == 0 {
            CaptureStatus::NONE
        } else {
            CaptureStatus::ACTIVE
        };
        self.0.borrow_mut().capture = (status, id);
    }

    /// Returns how many events exist.
    pub(crate) fn events(&self) -> usize {
        self.0.borrow().events.len()
    }

    /// Returns how often a driver function was called.
    pub(crate) fn calls(&self, call: &'static str) -> usize {
        self.0.borrow().calls.get(call).copied().unwrap_or(0)
    }

    fn call(&self, call: &'static str) -> Result<(), Failed> {
        let mut state = self.0.borrow_mut();
        *state.calls.entry(call).or_default() += 1;
        let code = state.errors.get(call).copied().unwrap_or(Code::SUCCESS);
        code.ok_of(call)
    }

    fn code(&self, call: &'static str) -> Result<(), Code> {
        self.call(call).map_err(|failed| failed.code)
    }

    fn new_handle(&self) -> usize {
        let mut state = self.0.borrow_mut();
        // The handles 0, 1 and 2 are default streams.
        state.handles += 1;
        state.handles + 0x1000
    }

    fn record_in(&self, event: Event, call: &'static str) -> Result<(), Failed> {
        self.call(call)?;
        let mut state = self.0.borrow_mut();
        let recorded = if state.is_held {
            EventState::Pending
        } else {
            EventState::Passed(state.now)
        };
        state.events.insert(event, recorded);
        Ok(())
    }
}

impl EventApi for FakeDriver {
    fn name_of(&self, code: Code) -> String {
        format!("CUDA error {}", code.0)
    }

    fn current_context(&self) -> Result<RawContext, Code> {
        self.code("cuCtxGetCurrent")
            .map(|()| self.0.borrow().current)
    }

    fn current_device(&self) -> Option<u32> {
        self.code("cuCtxGetDevice").ok().map(|()| 0)
    }

    fn set_context(&self, context: RawContext) -> Code {
        if let Err(code) = self.code("cuCtxSetCurrent") {
            return code;
        }
        self.0.borrow_mut().current = context;
        Code::SUCCESS
    }

    fn retain_if_primary(&self, _context: RawContext) -> Result<bool, Code> {
        self.code("cuDevicePrimaryCtxRetain").map(|()| true)
    }

    fn has_context_ids(&self) -> bool {
        self.0.borrow().context_id.is_some()
    }

    fn read_context_id(&self, _context: RawContext) -> Option<Result<u64, Failed>> {
        let id = self.0.borrow().context_id?;
        let before = self.0.borrow_mut().before_id.0.take();
        if let Some(before) = before {
            before();
        }
        Some(self.call("cuCtxGetId").map(|()| id))
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Option<CaptureMode> {
        Some(std::mem::replace(&mut self.0.borrow_mut().mode, mode))
    }

    fn create_stream(&self) -> Result<RawStream, Failed> {
        self.call("cuStreamCreate")?;
        Ok(RawStream(ptr::without_provenance_mut(self.new_handle())))
    }

    fn destroy_stream(&self, _stream: RawStream) {
        let _ = self.call("cuStreamDestroy_v2");
    }

    fn capture_status(&self, _stream: RawStream) -> Result<CaptureStatus, Failed> {
        self.call("cuStreamIsCapturing")
            .map(|()| self.0.borrow().capture.0)
    }

    fn capture_info(&self, _stream: RawStream) -> Option<Result<(CaptureStatus, u64), Failed>> {
        let info = self.call("cuStreamGetCaptureInfo");
        Some(info.map(|()| self.0.borrow().capture))
    }

    fn create_event(&self) -> Result<Event, Failed> {
        self.call("cuEventCreate")?;
        let event = event(self.new_handle());
        let mut state = self.0.borrow_mut();
        state.events.insert(event, EventState::NeverRecorded);
        Ok(event)
    }

    fn destroy_event(&self, event: Event) {
        let _ = self.call("cuEventDestroy_v2");
        let known = self.0.borrow_mut().events.remove(&event);
        assert!(known.is_some(), "{event:?} is destroyed twice");
    }

    fn record(&self, event: Event, _stream: RawStream) -> Result<(), Failed> {
        self.record_in(event, "cuEventRecord")
    }

    fn record_external(&self, event: Event, _stream: RawStream) -> Result<(), Failed> {
        self.record_in(event, "cuEventRecordWithFlags")
    }

    fn query(&self, event: Event) -> Code {
        if let Err(code) = self.code("cuEventQuery") {
            return code;
        }
        match self.0.borrow().events.get(&event) {
            Some(EventState::Pending) => Code(600),
            Some(_) => Code::SUCCESS,
            None => Code(400),
        }
    }

    fn synchronize(&self, _event: Event) -> Code {
        if let Err(code) = self.code("cuEventSynchronize") {
            return code;
        }
        self.release();
        Code::SUCCESS
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Elapsed, Code> {
        self.pass_scheduled();
        self.code("cuEventElapsedTime")?;
        let state = self.0.borrow();
        let time = |event| match state.events.get(&event) {
            Some(EventState::Passed(time)) => Ok(*time),
            Some(EventState::Pending) => Err(Code(600)),
            Some(EventState::NeverRecorded) | None => Err(Code(400)),
        };
        Ok(Elapsed::from_milliseconds(time(to)? - time(from)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::ffi::Capturing;

    fn context(handle: usize) -> RawContext {
        RawContext(ptr::without_provenance_mut(handle))
    }

    #[test]
    fn with_context_restores_the_context_even_after_an_error() {
        let driver = FakeDriver::new();
        let _ = driver.set_context(context(1));
        let failed: Result<(), _> = driver.with_context(context(2), || {
            assert_eq!(driver.current_context(), Ok(context(2)));
            Code(1).ok_of("cuEventCreate")
        });
        assert_eq!(failed.map_err(|failed| failed.code), Err(Code(1)));
        assert_eq!(driver.current_context(), Ok(context(1)));
    }

    #[test]
    fn a_call_is_repeated_in_its_context_only_where_the_driver_wants_one() {
        for (code, calls) in [(201, 2), (400, 1)] {
            let driver = FakeDriver::new();
            driver.break_call("cuStreamIsCapturing", code);
            let asked = driver.capturing(context(1), RawStream::LEGACY);
            assert!(matches!(asked, Capturing::Unknown(failed) if failed.code == Code(code)));
            assert_eq!(driver.calls("cuStreamIsCapturing"), calls);
            driver.break_call("cuCtxGetId", code);
            assert_eq!(driver.context_id(context(1)), Some(Err(Code(code))));
            assert_eq!(driver.calls("cuCtxGetId"), calls);
        }
    }

    #[test]
    fn a_stream_captures_also_where_recording_would_invalidate_another_capture() {
        let driver = FakeDriver::new();
        let ask = || driver.capturing(RawContext::NONE, RawStream::LEGACY);
        assert_eq!(ask(), Capturing::No);
        driver.set_capture(7);
        assert_eq!(ask(), Capturing::Yes);
        assert_eq!(
            driver.capture_id(RawContext::NONE, RawStream::LEGACY),
            Some(7)
        );
        driver.set_capture(0);
        driver.break_call("cuStreamIsCapturing", 906);
        assert_eq!(ask(), Capturing::Yes);
    }
}
