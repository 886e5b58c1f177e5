//! [`EventApi`] of the real driver: one driver function each.

use std::ffi::CStr;
use std::ptr;

use profiler_cuda_sys::driver::{
    CaptureMode, CaptureStatus, Code, Driver, EVENT_DEFAULT, Event, Failed, RECORD_EXTERNAL,
    RawContext, STREAM_NON_BLOCKING,
};
use profiler_report::internal::RawStream;

use super::elapsed::Elapsed;
use super::event_api::EventApi;

impl EventApi for Driver {
    fn name_of(&self, code: Code) -> String {
        let mut name = ptr::null();
        // SAFETY: writes one pointer, which outlives the call.
        let result = unsafe { (self.table().error_name)(code, &raw mut name) };
        if !result.is_ok() || name.is_null() {
            return format!("CUDA error {}", code.0);
        }
        // SAFETY: on success, `name` is a terminated string in the driver's constant data.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    #[inline]
    fn current_context(&self) -> Result<RawContext, Code> {
        let mut context = RawContext::NONE;
        // SAFETY: writes one pointer, which outlives the call.
        unsafe { (self.table().context_current)(&raw mut context) }.ok()?;
        Ok(context)
    }

    fn current_device(&self) -> Option<u32> {
        let mut device = -1;
        // SAFETY: writes one integer, which outlives the call.
        let code = unsafe { (self.table().context_device)(&raw mut device) };
        code.ok().ok()?;
        u32::try_from(device).ok()
    }

    fn set_context(&self, context: RawContext) -> Code {
        // SAFETY: the context was current on some thread, or belongs to a stream whose owner promised that it exists.
        // The driver answers with an error if it has been destroyed since.
        unsafe { (self.table().context_set)(context) }
    }

    fn retain_if_primary(&self, context: RawContext) -> Result<bool, Code> {
        let (mut device, mut flags, mut active) = (0, 0, 0);
        // SAFETY: writes one integer, which outlives the call.
        unsafe { (self.table().context_device)(&raw mut device) }.ok()?;
        // SAFETY: writes two integers, which outlive the call.
        unsafe { (self.table().primary_state)(device, &raw mut flags, &raw mut active) }.ok()?;
        // To retain an inactive primary context would create it.
        if active == 0 {
            return Ok(false);
        }
        let mut primary = RawContext::NONE;
        // SAFETY: writes one pointer, which outlives the call.
        unsafe { (self.table().primary_retain)(&raw mut primary, device) }.ok()?;
        if primary != context {
            // SAFETY: undoes the retain above. The context was active before, so this is not its last reference.
            let _ = unsafe { (self.table().primary_release)(device) };
        }
        Ok(primary == context)
    }

    fn has_context_ids(&self) -> bool {
        self.table().context_id.is_some()
    }

    #[inline]
    fn read_context_id(&self, context: RawContext) -> Option<Result<u64, Failed>> {
        let get = self.table().context_id?;
        let mut id = 0;
        // SAFETY: writes one integer, which outlives the call. The driver answers with an error if the context has been
        // destroyed.
        let code = unsafe { get(context, &raw mut id) };
        Some(code.ok_of("cuCtxGetId").map(|()| id))
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Option<CaptureMode> {
        let CaptureMode(mut mode) = mode;
        // SAFETY: reads and writes one integer, which outlives the call.
        let code = unsafe { (self.table().capture_mode)(&raw mut mode) };
        code.is_ok().then_some(CaptureMode(mode))
    }

    fn create_stream(&self) -> Result<RawStream, Failed> {
        let mut stream = RawStream::LEGACY;
        // SAFETY: writes one pointer, which outlives the call.
        unsafe { (self.table().stream_create)(&raw mut stream, STREAM_NON_BLOCKING) }
            .ok_of("cuStreamCreate")?;
        Ok(stream)
    }

    fn destroy_stream(&self, stream: RawStream) {
        // SAFETY: the owner of a stream from `create_stream` calls this once.
        let _ = unsafe { (self.table().stream_destroy)(stream) };
    }

    #[inline]
    fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failed> {
        let mut status = 0;
        // SAFETY: the stream's owner promised that it exists, and the scope keeps it. Writes one integer, which
        // outlives the call.
        unsafe { (self.table().stream_capturing)(stream, &raw mut status) }
            .ok_of("cuStreamIsCapturing")?;
        Ok(CaptureStatus(status))
    }

    fn capture_info(&self, stream: RawStream) -> Option<Result<(CaptureStatus, u64), Failed>> {
        let get = self.table().capture_info?;
        let (mut status, mut id) = (0, 0);
        // SAFETY: as for `capture_status`; writes two integers, which outlive the call.
        let code = unsafe { get(stream, &raw mut status, &raw mut id) };
        Some(
            code.ok_of("cuStreamGetCaptureInfo")
                .map(|()| (CaptureStatus(status), id)),
        )
    }

    fn create_event(&self) -> Result<Event, Failed> {
        let mut event = Event(ptr::null_mut());
        // SAFETY: writes one pointer, which outlives the call.
        unsafe { (self.table().event_create)(&raw mut event, EVENT_DEFAULT) }
            .ok_of("cuEventCreate")?;
        Ok(event)
    }

    fn destroy_event(&self, event: Event) {
        // SAFETY: an `Event` comes from `create_event`. The owner of its pair destroys it once.
        let _ = unsafe { (self.table().event_destroy)(event) };
    }

    #[inline]
    fn record(&self, event: Event, stream: RawStream) -> Result<(), Failed> {
        // SAFETY: the caller owns the event's pair. The stream's owner promised that it exists, and the scope keeps it.
        unsafe { (self.table().event_record)(event, stream) }.ok_of("cuEventRecord")
    }

    fn record_external(&self, event: Event, stream: RawStream) -> Result<(), Failed> {
        const CALL: &str = "cuEventRecordWithFlags";
        let record = self.table().record_with_flags.ok_or(Failed {
            call: CALL,
            code: Code::NOT_SUPPORTED,
        })?;
        // SAFETY: as for `record`.
        unsafe { record(event, stream, RECORD_EXTERNAL) }.ok_of(CALL)
    }

    fn query(&self, event: Event) -> Code {
        // SAFETY: the caller owns the event's pair.
        unsafe { (self.table().event_query)(event) }
    }

    fn synchronize(&self, event: Event) -> Code {
        // SAFETY: the caller owns the event's pair.
        unsafe { (self.table().event_synchronize)(event) }
    }

    fn elapsed(&self, from: Event, to: Event) -> Result<Elapsed, Code> {
        // SAFETY: the caller owns the events' pairs, or has compared their generation and epoch.
        let milliseconds = unsafe { self.elapsed_ms(from, to) }?;
        Ok(Elapsed::from_milliseconds(milliseconds))
    }
}
