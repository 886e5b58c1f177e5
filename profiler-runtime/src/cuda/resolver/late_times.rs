//! The times of scopes with several streams, and of scopes around them.
//!
//! Each stream of a scope is read by itself, in any order, and scopes inside may be read later than the one around. So what is
//! known of a scope is kept here until all of it is: its intervals on the device's time line, by context, and those of
//! the scopes inside whose streams were bound late. Its time is what they cover together, and its own time is what those inside do
//! not cover.

use std::collections::HashMap;
use std::num::NonZero;

use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use super::anchor::HostTime;
use super::child_times::Covered;
use crate::cuda::context::measurement::{GpuMeasurement, LateRole};

/// The most scopes that are kept. One is kept until it has ended and all of it is read, unless its end was lost.
const MAX_KEPT: usize = 1 << 12;

/// The scopes that are not complete, by their keys.
#[derive(Debug, Default)]
pub(super) struct LateTimes {
    scopes: HashMap<u64, LateScope>,
    /// How many have been added: a clock that tells old ones from new ones.
    additions: u64,
}

/// What is known of a scope.
#[derive(Debug, Default)]
pub(super) struct LateScope {
    /// Its streams that are not read, and the scopes inside that are not complete.
    waiting: usize,
    /// Its first measurement, once that is complete.
    first: Option<Box<GpuMeasurement>>,
    pub(super) streams: Vec<OnStream>,
    /// What the scopes inside cover.
    pub(super) inside: ByContext,
    /// The start of the first scope inside.
    pub(super) inside_start: Option<HostTime>,
    /// The device of a scope inside.
    pub(super) inside_device: Option<u32>,
    /// Why one of its streams has no time.
    loss: Option<CudaLoss>,
    /// Why a scope inside has no time.
    inside_loss: Option<CudaLoss>,
    added: u64,
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
}

/// Times that are covered, in the contexts with these numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct ByContext(Vec<(u32, Covered)>);

impl ByContext {
    /// Returns what is covered in a context.
    pub(super) fn of(&mut self, context: u32) -> &mut Covered {
        let place = self.0.iter().position(|(other, _)| *other == context);
        let place = place.unwrap_or_else(|| {
            self.0.push((context, Covered::anywhere()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    fn merge(&mut self, other: &Self) {
        for (context, covered) in &other.0 {
            self.of(*context).merge(covered, 0.0);
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.0.iter().map(|(_, covered)| covered.total()).sum()
    }
}

impl LateScope {
    /// Returns what the scope covers on all of its streams, and inside.
    pub(super) fn covers(&self) -> ByContext {
        let mut all = self.inside.clone();
        for on_stream in &self.streams {
            let covered = all.of(on_stream.stream_key.context);
            match on_stream.begin {
                Some(begin) => covered.add_around(begin, begin + on_stream.ns),
                None => covered.add_fixed(on_stream.ns),
            }
        }
        all
    }

    /// Returns when the scope's work began on the host.
    pub(super) fn start(&self) -> Option<HostTime> {
        let starts = self.streams.iter().filter_map(|on_stream| on_stream.start);
        let starts = starts.chain(self.inside_start);
        starts.min_by_key(|start| start.wall)
    }

    pub(super) fn device(&self) -> Option<u32> {
        let mut devices = self.streams.iter().map(|on_stream| on_stream.device);
        devices.find(Option::is_some).unwrap_or(self.inside_device)
    }

    /// Returns why the scope has no time. That of one without a stream is what those inside know.
    fn loss(&self) -> Option<CudaLoss> {
        let is_empty = || self.streams.is_empty();
        self.loss
            .or_else(|| self.inside_loss.filter(|_| is_empty()))
            .or_else(|| (is_empty() && self.inside.0.is_empty()).then_some(CudaLoss::Abandoned))
    }
}

/// A scope of which all is known.
pub(super) struct CompleteScope {
    pub(super) first: Box<GpuMeasurement>,
    pub(super) known: LateScope,
    pub(super) loss: Option<CudaLoss>,
}

impl LateTimes {
    /// Adds a scope that has ended. Returns its measurements with events, each of which is to be read, or given to
    /// [`lose`](Self::lose).
    #[allow(clippy::vec_box, reason = "a scope stays in its box from ring to pool")]
    pub(super) fn add(&mut self, mut first: Box<GpuMeasurement>) -> Vec<Box<GpuMeasurement>> {
        if let Some(outer) = first.late.outer {
            self.of(outer.get()).waiting += 1;
        }
        let scope = self.of(first.scope.key);
        scope.loss = first.loss;
        let mut measured = Vec::new();
        let mut next = first.late.next.take();
        while let Some(mut further) = next {
            next = further.late.next.take();
            further.sequence = first.sequence;
            measured.push(further);
        }
        if scope.loss.is_some() {
            measured.into_iter().for_each(GpuMeasurement::give_back);
            scope.first = Some(first);
            return Vec::new();
        }
        scope.waiting += measured.len();
        if first.pair.is_some() {
            scope.waiting += 1;
            measured.push(first);
        } else {
            scope.first = Some(first);
        }
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
        if !self.scopes.get(&key).is_some_and(is_complete) {
            return None;
        }
        let mut known = self.scopes.remove(&key)?;
        let loss = known.loss();
        Some(CompleteScope {
            first: known.first.take()?,
            known,
            loss,
        })
    }

    /// Adds what a complete scope covers to the one around it.
    pub(super) fn credit(
        &mut self,
        outer: NonZero<u64>,
        complete: &LateScope,
        covers: &ByContext,
        loss: Option<CudaLoss>,
    ) {
        let outer = self.of(outer.get());
        outer.waiting = outer.waiting.saturating_sub(1);
        outer.inside.merge(covers);
        outer.inside_loss = outer.inside_loss.or(loss);
        let starts = [outer.inside_start, complete.start()].into_iter().flatten();
        outer.inside_start = starts.min_by_key(|start| start.wall);
        outer.inside_device = outer.inside_device.or(complete.device());
    }

    /// Takes all scopes that have ended out.
    pub(super) fn take_ended(&mut self) -> impl Iterator<Item = Box<GpuMeasurement>> {
        self.scopes.drain().filter_map(|(_, scope)| scope.first)
    }

    fn of(&mut self, key: u64) -> &mut LateScope {
        self.additions += 1;
        if self.scopes.len() >= MAX_KEPT && !self.scopes.contains_key(&key) {
            self.remove_old();
        }
        let scope = self.scopes.entry(key).or_default();
        scope.added = self.additions;
        scope
    }

    /// Removes the older half of the scopes that have not ended: the ends of those were probably lost. If one ends nevertheless,
    /// its time is without what was read before.
    fn remove_old(&mut self) {
        let open = |scope: &LateScope| scope.first.is_none() && scope.waiting == 0;
        let mut additions: Vec<u64> = (self.scopes.values())
            .filter(|scope| open(scope))
            .map(|scope| scope.added)
            .collect();
        if additions.is_empty() {
            return;
        }
        let middle = additions.len() / 2;
        let median = *additions.select_nth_unstable(middle).1;
        self.scopes
            .retain(|_, scope| !open(scope) || scope.added > median);
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small integers are exact")]
mod tests {
    use super::*;
    use crate::cuda::context::measurement::ScopeRef;

    /// A scope without events that has ended.
    fn ended(key: u64, outer: u64, loss: Option<CudaLoss>) -> Box<GpuMeasurement> {
        let mut measurement = GpuMeasurement::new(None);
        measurement.scope = ScopeRef {
            key,
            ..ScopeRef::NONE
        };
        measurement.loss = loss;
        measurement.late.role = LateRole::First;
        measurement.late.outer = NonZero::new(outer);
        measurement
    }

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
        }
    }

    #[test]
    fn streams_of_a_context_overlap_and_those_of_others_add_up() {
        let mut scope = LateScope::default();
        scope.streams.push(on_stream(1, Some(0.0), 10.0));
        scope.streams.push(on_stream(1, Some(5.0), 10.0));
        scope.streams.push(on_stream(2, Some(5.0), 10.0));
        scope.inside.of(1).add_around(14.0, 20.0);
        assert_eq!(scope.covers().total(), 30.0);
        scope.streams.push(on_stream(1, None, 3.0));
        assert_eq!(scope.covers().total(), 33.0, "nobody knows where");
        assert_eq!(scope.device(), Some(1));
    }

    #[test]
    fn a_scope_is_complete_when_all_inside_is_known() {
        let mut late = LateTimes::default();
        for inside in [2, 3] {
            assert!(
                late.add(ended(inside, 1, Some(CudaLoss::Captured)))
                    .is_empty()
            );
        }
        assert!(late.add(ended(1, 0, None)).is_empty());
        for inside in [2, 3] {
            assert!(late.take_complete(1).is_none());
            let complete = late.take_complete(inside).expect("it has ended");
            assert_eq!(complete.loss, Some(CudaLoss::Captured));
            let outer = complete.first.late.outer.expect("the outer one");
            late.credit(outer, &complete.known, &ByContext::default(), complete.loss);
        }
        let outer = late.take_complete(1).expect("both are known");
        assert_eq!(outer.loss, Some(CudaLoss::Captured));
        assert!(late.scopes.is_empty());
    }

    #[test]
    fn scopes_whose_ends_were_lost_are_forgotten_at_some_time() {
        let mut late = LateTimes::default();
        let known = LateScope::default();
        for outer in 1..=3 * MAX_KEPT as u64 {
            let outer = NonZero::new(outer).expect("it is counted from one");
            late.credit(outer, &known, &ByContext::default(), None);
            assert!(late.scopes.len() <= MAX_KEPT);
        }
    }
}
