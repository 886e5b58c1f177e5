//! Events: where they were last recorded, and the times they hold.

use super::code::{
    Answer, CAPTURED_EVENT, INVALID_HANDLE, INVALID_VALUE, NOT_READY, STREAM_CAPTURE_INVALIDATED,
};
use super::machine::Machine;
use super::slab::Missing;
use super::task::{Join, Point, Task};
use super::thread;

/// The flag of an event without times.
const DISABLE_TIMING: u32 = 2;
/// The flags there are: blocking synchronisation, no timing, for other processes.
const FLAGS: u32 = 7;
/// The flag of a record or wait that becomes a node of the graph.
const EXTERNAL: u32 = 1;

/// Where an event was last recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Never,
    At(Point),
    /// In a capture, behind these nodes of its graph.
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
    /// Whether it holds a time that nobody has read.
    unread: bool,
}

impl Machine {
    /// Creates an event in the current context; returns its handle.
    pub(crate) fn create_event(&mut self, flags: u32) -> Answer<usize> {
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

    pub(crate) fn destroy_event(&mut self, handle: usize) -> Answer {
        self.require_current()?;
        let removed = self.events.remove(handle, Missing::Destroyed);
        let event = removed.map_err(|missing| self.missing(missing, handle))?;
        self.usable(event.context)
    }

    fn event(&mut self, handle: usize) -> Answer<&mut Event> {
        if let Err(missing) = self.events.get(handle) {
            return Err(self.missing(missing, handle));
        }
        self.require_current()?;
        self.events.get_mut(handle).map_err(|_| INVALID_HANDLE)
    }

    pub(crate) fn record(&mut self, event: usize, stream: usize, flags: u32) -> Answer {
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
            self.truth.unread_records += 1;
        }
    }

    fn record_in_capture(&mut self, capture: u64, key: usize, event: usize) -> Answer {
        let nodes = self.capture_frontier(capture, key)?;
        self.event(event)?.recorded = Recorded::Captured { capture, nodes };
        Ok(())
    }

    /// What an event stands for, for one who asks or waits.
    fn point_of(&mut self, handle: usize) -> Answer<Point> {
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

    /// Whether the last record of an event is over.
    pub(crate) fn query_event(&mut self, handle: usize) -> Answer {
        let point = self.point_of(handle)?;
        if self.is_past(point) {
            Ok(())
        } else {
            Err(NOT_READY)
        }
    }

    /// The end to wait for, and the context that may have failed until then.
    pub(crate) fn wait_for_event(&mut self, handle: usize) -> Answer<(Join, usize)> {
        let point = self.point_of(handle)?;
        Ok((Join::from(point), self.event(handle)?.context))
    }

    /// Makes a stream wait for an event.
    pub(crate) fn stream_waits(&mut self, stream: usize, event: usize, flags: u32) -> Answer {
        let key = self.stream_key(stream)?;
        let (context, capture) = (self.stream(key)?.context, self.stream(key)?.capture);
        let recorded = self.event(event)?.recorded.clone();
        self.usable(context)?;
        match (recorded, capture) {
            (Recorded::Captured { capture, nodes }, _) => self.fork(key, capture, nodes),
            (_, Some(capture)) if flags == EXTERNAL => self.capture_wait(capture, key, event),
            (_, None) if flags == EXTERNAL => Err(INVALID_VALUE),
            (Recorded::Never, Some(capture)) => self.capture_frontier(capture, key).map(drop),
            (Recorded::At(_), Some(capture)) => Err(self.refuse_isolation(capture)),
            (Recorded::Never, None) => Ok(()),
            (Recorded::At(point), None) => self.stream_waits_for(key, point),
        }
    }

    fn stream_waits_for(&mut self, key: usize, point: Point) -> Answer {
        self.refuse_implicit(key)?;
        // On the legacy stream the wait holds up what the stream itself would be held up by.
        let mut join = self.order(key);
        join.add(point);
        let tail = self.meet(&join, key)?;
        self.stream(key)?.tail = tail;
        Ok(())
    }

    /// The point at which all of `join` is over.
    pub(crate) fn meet(&mut self, join: &Join, key: usize) -> Answer<Point> {
        if join.pending.is_empty() {
            return Ok(Point::At(join.at));
        }
        let place = self.place(key)?;
        Ok(self.submit(join, Task::marker(), place))
    }

    /// Milliseconds from one event to another, as far as `f32` holds them.
    pub(crate) fn elapsed(&mut self, start: usize, end: usize) -> Answer<f32> {
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

    /// The nanoseconds that a device's clock shows, in steps of its resolution.
    fn device_time(&self, at: u64) -> f64 {
        let at = at as f64 * (1.0 + self.settings.clock_drift_ppm / 1e6);
        let step = self.settings.event_resolution_ns.max(1) as f64;
        (at / step).floor() * step
    }

    fn time_of(&mut self, handle: usize) -> Answer<u64> {
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

    /// The code for a stream of a capture that was spoiled.
    pub(crate) fn capture_is_valid(&self, capture: u64) -> Answer {
        match self.captures.get(&capture) {
            Some(capture) if capture.valid => Ok(()),
            _ => Err(STREAM_CAPTURE_INVALIDATED),
        }
    }
}
