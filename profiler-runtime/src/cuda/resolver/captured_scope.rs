//! One captured scope.

use profiler_cuda_sys::driver::Event;
use profiler_report::internal::StreamKey;

use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;

/// A scope whose events are part of a graph.
pub(super) struct CapturedScope {
    pub(super) measurement: Box<GpuMeasurement>,
    pub(super) pair: Pair,
    /// The indices of the scopes directly inside this one.
    pub(super) children: Vec<usize>,
    /// The distance of the end from the anchor after the last replay that was read, in nanoseconds.
    last_end: Option<f64>,
    /// The time of the last replay that was read, in nanoseconds.
    pub(super) last_ns: f64,
    /// `true` if a replay of the group was noticed and has not been read for this scope.
    pub(super) is_due: bool,
}

impl CapturedScope {
    pub(super) fn new(measurement: Box<GpuMeasurement>, pair: Pair) -> Self {
        Self {
            measurement,
            pair,
            children: Vec::new(),
            last_end: None,
            last_ns: 0.0,
            is_due: false,
        }
    }

    pub(super) fn stream_key(&self) -> StreamKey {
        self.measurement.scope.stream_key
    }

    /// Returns `true` if `outer` is the scope directly around this one.
    pub(super) fn is_inside(&self, outer: &Self) -> bool {
        let key = outer.measurement.scope.key;
        self.measurement
            .parent
            .is_some_and(|parent| parent.get() == key)
    }

    /// Returns `true` if `outer` has the same name, stream and capture, and was open from before this one began until it had
    /// ended.
    ///
    /// It need not be [directly](Self::is_inside) around it.
    pub(super) fn is_recursion_of(&self, outer: &Self) -> bool {
        let (inner, outer) = (&*self.measurement, &*outer.measurement);
        let began = |scope: &GpuMeasurement| {
            let elapsed = u64::try_from(scope.span.elapsed).unwrap_or(0);
            scope.span.end.saturating_sub(elapsed)
        };
        let of = |scope: &GpuMeasurement| (scope.scope.name, scope.scope.stream_key, scope.capture);
        let is_same = of(inner) == of(outer);
        is_same
            && inner.capture != 0
            && outer.scope.key < inner.scope.key
            && began(outer) <= began(inner)
            && outer.span.end >= inner.span.end
    }

    /// Returns `true` if the device has passed the end since the last replay that was read.
    pub(super) fn has_moved(&self, driver: &impl EventApi, anchor: Event) -> bool {
        let end = driver.distance(anchor, self.pair.end);
        end.is_some() && end != self.last_end
    }

    /// Reads the time of a replay, in nanoseconds. Returns `None` if there was none since the last one that was read,
    /// or the device has not passed both events of it.
    pub(super) fn read_replay(&mut self, driver: &impl EventApi, anchor: Event) -> Option<f64> {
        let end = driver.distance(anchor, self.pair.end)?;
        if self.last_end == Some(end) {
            return None;
        }
        let ns = driver.distance(self.pair.begin, self.pair.end)?;
        // If another replay has begun in between, the begin is newer than the end, or the end has moved.
        if ns < 0.0 || driver.distance(anchor, self.pair.end) != Some(end) {
            return None;
        }
        self.last_end = Some(end);
        self.last_ns = ns;
        self.is_due = false;
        Some(ns)
    }

    /// Measures the known end from another anchor.
    pub(super) fn rebase(&mut self, driver: &impl EventApi, before: Event, after: Option<Event>) {
        let end = self.pair.end;
        // If the scope was replayed since its last read, its end has moved. Without a known end, the replay is noticed.
        let is_unmoved = self.last_end.is_some() && driver.distance(before, end) == self.last_end;
        self.last_end = after
            .filter(|_| is_unmoved)
            .and_then(|after| driver.distance(after, end));
    }
}
