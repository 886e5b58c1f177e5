//! The times of scopes with several streams.
//!
//! Each stream of a scope is read by itself, in any order. So what is known of a scope is kept here until all of its streams are
//! read: its intervals on the device's time line, by context. Its time is what they cover together.

use std::collections::HashMap;

use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use super::anchor::HostTime;
use super::child_times::Covered;
use crate::cuda::context::measurement::{GpuMeasurement, LateRole};

/// The scopes that have ended and are not complete, by their keys.
#[derive(Debug, Default)]
pub(super) struct LateTimes(HashMap<u64, LateScope>);

/// What is known of a scope.
#[derive(Debug, Default)]
struct LateScope {
    /// Its streams that are not read.
    waiting: usize,
    /// Its first measurement, once that is read.
    first: Option<Box<GpuMeasurement>>,
    streams: Vec<OnStream>,
    /// Why one of its streams has no time.
    loss: Option<CudaLoss>,
}

impl LateScope {
    /// Returns `true` if nobody knows how long several streams of a context overlapped, since the driver did not say where one is.
    fn lacks_places(&self) -> bool {
        let of = |context| move |other: &&OnStream| other.stream_key.context == context;
        self.streams.iter().any(|on_stream| {
            let context = on_stream.stream_key.context;
            on_stream.begin.is_none() && self.streams.iter().filter(of(context)).count() > 1
        })
    }
}

/// The time of a scope on one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnStream {
    pub(super) stream_key: StreamKey,
    pub(super) ns: f64,
    /// When it began, in nanoseconds on the device's time line.
    pub(super) begin: Option<f64>,
    /// When it began on the host.
    pub(super) start: Option<HostTime>,
    pub(super) device: Option<u32>,
    /// The name of the scope directly around it, if that is on another stream.
    pub(super) parent_elsewhere: Option<u32>,
}

/// A scope of which all is known.
pub(super) struct CompleteScope {
    pub(super) first: Box<GpuMeasurement>,
    pub(super) streams: Vec<OnStream>,
    pub(super) loss: Option<CudaLoss>,
}

impl CompleteScope {
    /// Returns how long at least one of the streams lasted, of those that `which` selects. Times in several contexts add up.
    pub(super) fn covers(&self, which: impl Fn(&OnStream) -> bool) -> f64 {
        let mut contexts: Vec<(u32, Covered)> = Vec::new();
        for on_stream in self.streams.iter().filter(|on_stream| which(on_stream)) {
            let context = on_stream.stream_key.context;
            let place = contexts.iter().position(|(other, _)| *other == context);
            let place = place.unwrap_or_else(|| {
                contexts.push((context, Covered::anywhere()));
                contexts.len() - 1
            });
            let covered = &mut contexts[place].1;
            match on_stream.begin {
                Some(begin) => covered.add_interval(begin, begin + on_stream.ns),
                None => covered.add_fixed(on_stream.ns),
            }
        }
        contexts.iter().map(|(_, covered)| covered.total()).sum()
    }

    /// Returns when the scope's work began on the host.
    pub(super) fn start(&self) -> Option<HostTime> {
        let starts = self.streams.iter().filter_map(|on_stream| on_stream.start);
        starts.min_by_key(|start| start.wall)
    }

    pub(super) fn device(&self) -> Option<u32> {
        self.streams.iter().find_map(|on_stream| on_stream.device)
    }
}

impl LateTimes {
    /// Adds a scope that has ended. Returns its measurements, each of which is to be read, or given to [`lose`](Self::lose).
    #[allow(clippy::vec_box, reason = "a scope stays in its box from ring to pool")]
    pub(super) fn add(&mut self, mut first: Box<GpuMeasurement>) -> Vec<Box<GpuMeasurement>> {
        let scope = self.of(first.scope.key);
        let mut measured = Vec::new();
        let mut next = first.late.next.take();
        while let Some(mut further) = next {
            next = further.late.next.take();
            further.sequence = first.sequence;
            further.scope.name = first.scope.name;
            measured.push(further);
        }
        if first.loss.is_some() {
            measured.into_iter().for_each(GpuMeasurement::give_back);
            (scope.loss, scope.first) = (first.loss, Some(first));
            return Vec::new();
        }
        measured.push(first);
        scope.waiting = measured.len();
        measured
    }

    /// Adds the time of a scope on one of its streams.
    pub(super) fn read(&mut self, measurement: Box<GpuMeasurement>, on_stream: OnStream) {
        self.of(measurement.scope.key).streams.push(on_stream);
        self.done(measurement);
    }

    /// Notes that one of a scope's streams has no time.
    pub(super) fn lose(&mut self, measurement: Box<GpuMeasurement>, loss: CudaLoss) {
        self.of(measurement.scope.key).loss.get_or_insert(loss);
        self.done(measurement);
    }

    fn done(&mut self, measurement: Box<GpuMeasurement>) {
        let scope = self.of(measurement.scope.key);
        scope.waiting = scope.waiting.saturating_sub(1);
        if measurement.late.role == LateRole::First {
            scope.first = Some(measurement);
        } else {
            measurement.give_back();
        }
    }

    /// Takes a scope out if all of it is known.
    pub(super) fn take_complete(&mut self, key: u64) -> Option<CompleteScope> {
        let is_complete = |scope: &LateScope| scope.waiting == 0 && scope.first.is_some();
        if !self.0.get(&key).is_some_and(is_complete) {
            return None;
        }
        let mut known = self.0.remove(&key)?;
        let loss = known
            .loss
            .or_else(|| known.lacks_places().then_some(CudaLoss::DriverRefused));
        Some(CompleteScope {
            first: known.first.take()?,
            streams: known.streams,
            loss,
        })
    }

    /// Takes all scopes out.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Box<GpuMeasurement>> {
        self.0.drain().filter_map(|(_, scope)| scope.first)
    }

    fn of(&mut self, key: u64) -> &mut LateScope {
        self.0.entry(key).or_default()
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small integers are exact")]
mod tests {
    use super::*;
    use crate::cuda::context::measurement::ScopeRef;

    fn on_stream(context: u32, begin: Option<f64>, ns: f64) -> OnStream {
        OnStream {
            stream_key: StreamKey {
                context,
                ..StreamKey::NOWHERE
            },
            ns,
            begin,
            start: None,
            device: Some(context),
            parent_elsewhere: None,
        }
    }

    fn measurement(role: LateRole) -> Box<GpuMeasurement> {
        let mut measurement = GpuMeasurement::new(None);
        measurement.scope = ScopeRef {
            key: 7,
            ..ScopeRef::NONE
        };
        measurement.late.role = role;
        measurement
    }

    /// A scope with streams that were read.
    fn read(streams: &[OnStream]) -> CompleteScope {
        let mut late = LateTimes::default();
        let mut first = measurement(LateRole::First);
        for _ in 1..streams.len() {
            first.add_further(measurement(LateRole::Further));
        }
        let measured = late.add(first);
        assert_eq!(measured.len(), streams.len());
        for (measured, on_stream) in measured.into_iter().zip(streams) {
            assert!(late.take_complete(7).is_none());
            late.read(measured, *on_stream);
        }
        let complete = late.take_complete(7).expect("all of it is read");
        assert!(late.0.is_empty());
        complete
    }

    #[test]
    fn streams_of_a_context_overlap_and_those_of_others_add_up() {
        let scope = read(&[
            on_stream(1, Some(0.0), 10.0),
            on_stream(1, Some(5.0), 10.0),
            on_stream(2, Some(5.0), 10.0),
        ]);
        assert_eq!(scope.covers(|_| true), 25.0);
        assert_eq!(scope.covers(|on_stream| on_stream.device == Some(1)), 15.0);
        assert_eq!((scope.device(), scope.loss), (Some(1), None));
    }

    #[test]
    fn several_streams_of_a_context_without_a_place_have_no_time() {
        let unplaced = on_stream(1, None, 10.0);
        let alone = read(&[unplaced, on_stream(2, Some(0.0), 5.0)]);
        assert_eq!((alone.covers(|_| true), alone.loss), (15.0, None));
        let both = read(&[unplaced, on_stream(1, Some(0.0), 5.0)]);
        assert_eq!(both.loss, Some(CudaLoss::DriverRefused));
    }

    #[test]
    fn a_scope_is_lost_with_one_of_its_streams() {
        let mut late = LateTimes::default();
        let mut first = measurement(LateRole::First);
        first.add_further(measurement(LateRole::Further));
        let mut measured = late.add(first).into_iter();
        late.read(measured.next().expect("two"), on_stream(1, Some(0.0), 10.0));
        late.lose(measured.next().expect("two"), CudaLoss::ContextGone);
        let complete = late.take_complete(7).expect("all of it is known");
        assert_eq!(complete.loss, Some(CudaLoss::ContextGone));
        let mut first = measurement(LateRole::First);
        first.loss = Some(CudaLoss::Captured);
        first.add_further(measurement(LateRole::Further));
        assert!(late.add(first).is_empty());
        let complete = late.take_complete(7).expect("nothing is to be read");
        assert_eq!(complete.loss, Some(CudaLoss::Captured));
    }
}
