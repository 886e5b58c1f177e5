//! Events: where each was last recorded, and its time.

use super::code::{
    CAPTURED_EVENT, CudaResult, INVALID_HANDLE, INVALID_VALUE, NOT_READY,
    STREAM_CAPTURE_INVALIDATED,
};
use super::slab::Missing;
use super::state::DriverState;
use super::task::{Join, Point, Task};
use super::thread;

/// The flag of an event without timing.
const DISABLE_TIMING: u32 = 2;
/// All flags: blocking synchronization, no timing, interprocess.
const FLAGS: u32 = 7;
/// The flag of a record or wait that becomes a node of the captured graph.
const EXTERNAL: u32 = 1;

/// Where an event was last recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Never,
    At(Point),
    /// In a capture, after these nodes of its graph.
    Captured {
        capture: u64,
        nodes: Vec<usize>,
    },
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    timed: bool,
    pub(crate) recorded: Recorded,
    /// `true` if it holds a time that was not read.
    unread: bool,
}

impl DriverState {
    /// Creates an event in the current context. Returns its handle.
    pub(crate) fn create_event(&mut self, flags: u32) -> CudaResult<usize> {
        let context = self.usable_current()?;
        if flags & !FLAGS != 0 {
            return Err(INVALID_VALUE);
        }
        let timed = flags & DISABLE_TIMING == 0;
        Ok(self.events.insert(Event {
            context,
            timed,
            recorded: Recorded::Never,
            unread: false,
        }))
    }

    pub(crate) fn destroy_event(&mut self, handle: usize) -> CudaResult {
        self.require_current()?;
        let removed = self.events.remove(handle, Missing::Destroyed);
        let event = removed.map_err(|missing| self.report_missing(missing, handle))?;
        self.usable(event.context)
    }

    fn event(&mut self, handle: usize) -> CudaResult<&mut Event> {
        if let Err(missing) = self.events.get(handle) {
            return Err(self.report_missing(missing, handle));
        }
        self.require_current()?;
        self.events.get_mut(handle).map_err(|_| INVALID_HANDLE)
    }

    pub(crate) fn record(&mut self, event: usize, stream: usize, flags: u32) -> CudaResult {
        let key = self.stream_key(stream)?;
        let (context, capture) = (self.stream(key)?.context, self.stream(key)?.capture);
        if self.event(event)?.context != context {
            self.misuse("event and stream belong to different contexts", event);
            return Err(INVALID_HANDLE);
        }
        self.usable(context)?;
        match (capture, flags) {
            (Some(capture), 0) => return self.record_in_capture(capture, key, event),
            (Some(_), EXTERNAL) | (None, 0) => {}
            _ => return Err(INVALID_VALUE),
        }
        if capture.is_none() {
            self.note_unread(event);
        }
        self.enqueue(key, Task::record(event)).map(drop)
    }

    fn note_unread(&mut self, event: usize) {
        if let Ok(event) = self.events.get_mut(event)
            && std::mem::replace(&mut event.unread, event.timed)
        {
            self.log.unread_records += 1;
        }
    }

    fn record_in_capture(&mut self, capture: u64, key: usize, event: usize) -> CudaResult {
        let nodes = self.capture_frontier(capture, key)?;
        self.event(event)?.recorded = Recorded::Captured { capture, nodes };
        Ok(())
    }

    /// Returns the point of an event's last record, for a query or a wait.
    fn point_of(&mut self, handle: usize) -> CudaResult<Point> {
        let event = self.event(handle)?;
        let (context, recorded) = (event.context, event.recorded.clone());
        self.usable(context)?;
        match recorded {
            Recorded::Never => Ok(Point::At(0)),
            Recorded::At(point) => Ok(point),
            Recorded::Captured { capture, .. } => {
                self.invalidate(capture);
                Err(CAPTURED_EVENT)
            }
        }
    }

    /// Fails with `NOT_READY` until the last record of an event has finished.
    pub(crate) fn query_event(&mut self, handle: usize) -> CudaResult {
        let point = self.point_of(handle)?;
        if self.is_past(point) {
            Ok(())
        } else {
            Err(NOT_READY)
        }
    }

    /// Returns the point to wait for, and the context that may fail until then.
    pub(crate) fn wait_for_event(&mut self, handle: usize) -> CudaResult<(Join, usize)> {
        let point = self.point_of(handle)?;
        Ok((Join::from(point), self.event(handle)?.context))
    }

    /// Makes a stream wait for an event.
    pub(crate) fn stream_waits(&mut self, stream: usize, event: usize, flags: u32) -> CudaResult {
        let key = self.stream_key(stream)?;
        let (context, capture) = (self.stream(key)?.context, self.stream(key)?.capture);
        let recorded = self.event(event)?.recorded.clone();
        self.usable(context)?;
        match (recorded, capture) {
            (Recorded::Captured { capture, nodes }, _) => self.fork(key, capture, nodes),
            (_, Some(capture)) if flags == EXTERNAL => self.capture_wait(capture, key, event),
            (_, None) if flags == EXTERNAL => Err(INVALID_VALUE),
            (Recorded::Never, Some(capture)) => self.capture_frontier(capture, key).map(drop),
            (Recorded::At(_), Some(capture)) => Err(self.isolation_error(capture)),
            (Recorded::Never, None) => Ok(()),
            (Recorded::At(point), None) => self.stream_waits_for(key, point),
        }
    }

    fn stream_waits_for(&mut self, key: usize, point: Point) -> CudaResult {
        self.check_implicit_sync(key)?;
        // On the legacy stream, a wait also waits for everything that the stream's next work would
        // wait for.
        let mut join = self.order(key);
        join.add(point);
        let tail = self.join_point(&join, key)?;
        self.stream(key)?.tail = tail;
        Ok(())
    }

    /// Returns the point at which all of `join` has finished.
    pub(crate) fn join_point(&mut self, join: &Join, key: usize) -> CudaResult<Point> {
        if join.pending.is_empty() {
            return Ok(Point::At(join.at));
        }
        let place = self.place(key)?;
        Ok(self.submit(join, Task::marker(), place))
    }

    /// Returns the milliseconds between two events, with the precision of `f32`.
    pub(crate) fn elapsed(&mut self, start: usize, end: usize) -> CudaResult<f32> {
        let (from, to) = (self.time_of(start)?, self.time_of(end)?);
        if self.event(start)?.context != self.event(end)?.context {
            self.misuse("the events belong to different contexts", end);
            return Err(INVALID_HANDLE);
        }
        for handle in [start, end] {
            self.event(handle)?.unread = false;
        }
        let (from, to) = (self.device_time(from), self.device_time(to));
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the driver's own precision"
        )]
        let ms = ((to - from) / 1e6) as f32;
        Ok(thread::planned_time().unwrap_or(ms))
    }

    /// Converts a time to that of the devices' clocks, in whole nanoseconds.
    fn device_time(&self, at: u64) -> f64 {
        (at as f64 * (1.0 + self.settings.clock_drift_ppm / 1e6)).floor()
    }

    fn time_of(&mut self, handle: usize) -> CudaResult<u64> {
        let point = self.point_of(handle)?;
        let event = self.event(handle)?;
        if !event.timed || event.recorded == Recorded::Never {
            return Err(INVALID_HANDLE);
        }
        match point {
            Point::At(at) if self.is_past(point) => Ok(at),
            _ => Err(NOT_READY),
        }
    }

    /// Fails if a capture was invalidated.
    pub(crate) fn capture_is_valid(&self, capture: u64) -> CudaResult {
        match self.captures.get(&capture) {
            Some(capture) if capture.valid => Ok(()),
            _ => Err(STREAM_CAPTURE_INVALIDATED),
        }
    }
}
