//! One round of the resolver.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::thread;
use std::time::Duration;

use profiler_report::CudaLoss;

use super::completion::{self, Completion};
use super::context_state::ContextState;
use super::pace::Waiting;
use super::{gauges, rings, take_suspicion, totals};
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::context::{self, Context};
use crate::cuda::ffi::EventApi;

/// Everything that the resolver keeps between rounds.
pub(super) struct ResolverState<D: 'static> {
    /// Scopes that came out of the rings.
    #[allow(clippy::vec_box, reason = "a scope stays in its box from ring to pool")]
    drained: Vec<Box<GpuMeasurement>>,
    /// Scopes of `drained` in their final order, on their way to the queues of their contexts.
    ordered: VecDeque<Box<GpuMeasurement>>,
    /// How many scopes have been enqueued: the sequence number of the next one.
    next_sequence: u64,
    contexts: BTreeMap<u32, ContextState>,
    completion: Completion<D>,
}

impl<D: EventApi> ResolverState<D> {
    pub(super) fn new(driver: &'static D) -> Self {
        Self {
            drained: Vec::new(),
            ordered: VecDeque::new(),
            next_sequence: 0,
            contexts: BTreeMap::new(),
            completion: Completion::new(driver),
        }
    }

    /// Empties the rings and reads the events that the device has passed. Returns `true` if there were any of either.
    ///
    /// `read_all` makes the round look for replays of graphs whose next check is not due yet.
    pub(super) fn round(&mut self, read_all: bool) -> bool {
        self.completion.log.begin();
        let mut progress = self.drain_rings();
        gauges::set_pending(self.pending());
        progress |= self.poll_contexts(read_all);
        gauges::set_pending(self.pending());
        progress
    }

    /// Reads the events that the device has passed. Returns `true` if there were any.
    fn poll_contexts(&mut self, read_all: bool) -> bool {
        let suspects = self.suspects();
        let check_suspects = !suspects.is_empty();
        let mut progress = false;
        for context in self.contexts.values_mut() {
            progress |= context.poll(&mut self.completion, check_suspects, read_all);
        }
        // Only those that were checked: a measured thread may suspect another context at this moment.
        for context in suspects {
            context.set_suspect(false);
        }
        progress
    }

    /// Returns the contexts that may have been destroyed, each with a state: nothing may have been measured in them
    /// yet.
    fn suspects(&mut self) -> Vec<&'static Context> {
        if !take_suspicion() {
            return Vec::new();
        }
        let suspects = context::all().into_iter();
        let suspects: Vec<_> = suspects.filter(|context| context.is_suspect()).collect();
        for context in &suspects {
            self.state_of(context);
        }
        suspects
    }

    /// Returns the sequence number that the next scope to leave the rings will have.
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    fn pending(&self) -> usize {
        self.contexts.values().map(ContextState::pending).sum()
    }

    /// Returns what waits for the device.
    pub(super) fn waiting(&self) -> Waiting {
        let contexts = || self.contexts.values();
        let mut watched = contexts().filter(|context| context.is_watched()).peekable();
        if watched.peek().is_none() {
            Waiting::Nothing
        } else if watched.all(ContextState::is_starved) {
            Waiting::AllPairs
        } else {
            Waiting::Some
        }
    }

    /// Returns when a round is needed although no scope ends before it, if one is.
    pub(super) fn next_task(&self) -> Option<Duration> {
        let tasks = self.contexts.values().filter_map(ContextState::next_task);
        tasks.min()
    }

    /// Returns when the oldest unread scope ended on the CPU, in ticks; `u64::MAX` if all have been read.
    pub(super) fn oldest_unread_end(&self) -> u64 {
        let queued = self.contexts.values().map(ContextState::oldest_end);
        let drained = self.drained.iter().map(|measurement| measurement.span.end);
        queued.chain(drained).min().unwrap_or(u64::MAX)
    }

    /// Returns the sequence number of the oldest scope in the queues; `u64::MAX` if they are empty.
    pub(super) fn oldest_pending(&self) -> u64 {
        let oldest = self
            .contexts
            .values()
            .filter_map(ContextState::oldest_sequence);
        oldest.min().unwrap_or(u64::MAX)
    }

    /// Returns how uncertain the begin of GPU times is, in nanoseconds: the worst of all contexts.
    pub(super) fn uncertainty(&self) -> Option<f64> {
        let uncertainties = self.contexts.values().filter_map(ContextState::uncertainty);
        uncertainties.reduce(f64::max)
    }

    /// Takes the scopes out of the rings, and enqueues those of which all children are known. Returns `true` if the
    /// rings held any.
    ///
    /// [`ChildTimes`](super::child_times::ChildTimes) requires that a child is enqueued before its parent. A child may
    /// have run on another thread than its parent, as futures do, and its ring may be drained before its parent's. It
    /// may then arrive in a ring that is already drained, while its parent is taken from a later one. The remedy:
    ///
    /// 1. Drain the rings, and let `last` be the latest end of a scope in them.
    /// 2. Drain the rings again.
    /// 3. Enqueue the scopes that ended at `last` or before. Later ones wait for the next round.
    ///
    /// Let P be a scope of step 3, and C a child of P. C was pushed before P ended, so before `last`. The scope that
    /// ended at `last` was itself in a ring in step 1. So C was in its ring when step 1 was over, and step 2 took it at
    /// the latest. (Ticks of all threads are comparable: see [`clock`](crate::clock).)
    fn drain_rings(&mut self) -> bool {
        rings::drain(&mut self.drained);
        let ends = self.drained.iter().map(|measurement| measurement.span.end);
        let Some(last) = ends.max() else {
            return false;
        };
        rings::drain(&mut self.drained);
        self.enqueue_until(last);
        true
    }

    /// Enqueues the drained scopes that ended at `last` or before.
    fn enqueue_until(&mut self, last: u64) {
        // The order in which scopes of several threads end is the best guess of the order in which the device passes
        // them. Of scopes with equal ends on one thread, the one that was opened last is the inner one, and its key is
        // larger. (A stable sort would allocate.)
        self.drained.sort_unstable_by_key(|measurement| {
            (measurement.span.end, Reverse(measurement.scope.key))
        });
        let count = self
            .drained
            .partition_point(|measurement| measurement.span.end <= last);
        self.ordered.extend(self.drained.drain(..count));
        while let Some(measurement) = self.ordered.pop_front() {
            self.enqueue(measurement);
        }
    }

    fn enqueue(&mut self, mut measurement: Box<GpuMeasurement>) {
        self.completion.begin(&measurement);
        measurement.sequence = self.next_sequence;
        self.next_sequence += 1;
        self.completion.assign_step(&mut measurement);
        self.completion.find_inner(&mut measurement);
        match (measurement.loss, measurement.pair) {
            (Some(loss), _) => self.completion.lose(measurement, loss),
            (None, Some(pair)) if pair.epoch == pair.context.epoch() => {
                self.state_of(pair.context).add(measurement, pair);
                self.completion.end();
            }
            (None, None) if measurement.bound.is_some() => self.completion.end_call(measurement),
            // The context was destroyed after the scope ended, and its events with it.
            (None, _) => self.completion.lose(measurement, CudaLoss::ContextGone),
        }
    }

    fn state_of(&mut self, context: &'static Context) -> &mut ContextState {
        let states = self.contexts.entry(context.index);
        states.or_insert_with(|| ContextState::new(context))
    }

    /// Destroys all events that no scope uses. The program is about to end.
    pub(super) fn destroy_events(&mut self) {
        let driver = self.completion.driver;
        for context in context::all() {
            self.state_of(context);
        }
        for context in self.contexts.values_mut() {
            context.destroy_events(driver);
        }
    }
}

impl<D> Drop for ResolverState<D> {
    /// Counts the scopes that are lost with the state if the thread panicked.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let loss = CudaLoss::ThreadPanicked;
        if let Some(name) = self.completion.current_name.take() {
            totals::count_without(name, loss);
        }
        if let Some(scope) = self.completion.current_segment.take() {
            scope.segments(|segments| segments.lose(loss));
        }
        for measurement in self.drained.drain(..).chain(self.ordered.drain(..)) {
            completion::lose_unread(measurement, loss);
        }
        for context in self.contexts.values_mut() {
            context.lose_unread(loss);
        }
        for (_, call) in mem::take(&mut self.completion.bound_calls) {
            completion::lose_unread(call, loss);
        }
        gauges::set_pending(0);
    }
}

#[cfg(test)]
mod tests;
