//! Scopes in captured CUDA graphs. Each replay of a graph has GPU times of its own.
//!
//! A scope with `cuda_graph` records its two events while the stream is being captured, and they become part of the
//! graph. Each launch of the graph, a replay, records them again. The driver does not report replays, so the resolver
//! notices them by the end events: after a replay, they are at another distance from the anchor than before. A replay
//! overwrites the events of the one before, so replays that follow each other faster than the resolver polls are seen
//! as one.
//!
//! # Reading a replay
//!
//! A replay records the events of all scopes that were captured together, and those of one stream in the order in which
//! they were captured. Such scopes form a [`CaptureGroup`], whose states are:
//!
//! 1. Unchanged: the end of the first member is where it was. One query tells this for the whole group, and one more of
//!    another member, a different one in each poll: members need not run together, because nodes of a graph can be
//!    disabled or conditional. A member that moves without the first one gets a group of its own.
//! 2. Noticed: the first member's end has moved. All members are marked as due.
//! 3. Read: due members are read in order, until one that the device has not passed. Inner scopes end before outer
//!    ones, so the times of the children are known when a parent is read. The rest stays due until the next poll.
//!
//! A replay may begin at any moment, also between two queries for the same scope. So the end is located before and
//! after the length is read, and the time counts only if both agree ([`CapturedScope::read_replay`]).
//!
//! A graph can be launched while its scopes are still on their way to the resolver. A scope that joins a group that has
//! been replayed is due at once: the replay that was noticed before it arrived includes it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_cuda_sys::driver::Event;
use profiler_host::diagnostics::user_code;

use super::capture_group::{CaptureGroup, age_ns};
use super::captured_scope::CapturedScope;
use crate::clock::now;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;

/// The number of captured scopes that are polled for replays, over all contexts.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Returns `true` if a round of the resolver may find replays.
pub(crate) fn are_watched() -> bool {
    WATCHED.load(Relaxed) > 0
}

/// A graph that was replayed within this time is expected to be replayed again soon. The resolver polls quickly then,
/// because each replay overwrites the one before.
const LATELY_NS: f64 = 5e8;

/// One replay of a captured scope.
pub(super) struct ReplayedScope<'a> {
    pub(super) measurement: &'a GpuMeasurement,
    /// Its time, in nanoseconds.
    pub(super) ns: f64,
    /// Its time without that of the scopes directly inside, in nanoseconds.
    pub(super) own: f64,
    /// `true` if no scope of the same name and capture is around it.
    pub(super) outermost: bool,
}

/// The captured scopes of one context, at most as many as the context allows to be captured.
#[derive(Default)]
pub(super) struct CapturedScopes {
    scopes: Vec<CapturedScope>,
    groups: Vec<CaptureGroup>,
    /// When a replay was last read, in ticks; zero for never.
    last_replay: u64,
}

impl CapturedScopes {
    /// Adds a scope whose events became part of a graph.
    pub(super) fn add(&mut self, measurement: Box<GpuMeasurement>, pair: Pair) {
        WATCHED.fetch_add(1, Relaxed);
        let index = self.scopes.len();
        let mut scope = CapturedScope::new(measurement, pair);
        for (other_index, other) in self.scopes.iter_mut().enumerate() {
            if other.is_inside(&scope) {
                scope.children.push(other_index);
            }
            if scope.is_inside(other) {
                other.children.push(index);
            }
        }
        scope.is_due = self.join_group(&scope, index);
        self.scopes.push(scope);
    }

    /// Adds the scope to its group, or to a new one. Returns `true` if the group has been replayed.
    fn join_group(&mut self, scope: &CapturedScope, index: usize) -> bool {
        let (capture, stream_key) = (scope.measurement.capture, scope.stream_key());
        // Scopes of one capture arrive close together, so the search begins with the newest group.
        let mut groups = self.groups.iter_mut().rev();
        if let Some(group) = groups.find(|group| group.accepts(capture, stream_key)) {
            group.members.push(index);
            group.has_run
        } else {
            self.groups
                .push(CaptureGroup::new(capture, stream_key, index));
            false
        }
    }

    /// Removes all scopes: their context is gone, or the program ends.
    pub(super) fn clear(&mut self) {
        let scopes = std::mem::take(&mut self.scopes);
        for scope in &scopes {
            scope.pair.context.retire(&scope.pair);
        }
        self.groups.clear();
        WATCHED.fetch_sub(scopes.len(), Relaxed);
        // The scopes hold loggers, whose destructors are user code.
        user_code::drop_value(scopes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Returns `true` if a replay was read so recently that more are expected at once.
    pub(super) fn were_replayed_lately(&self) -> bool {
        self.last_replay != 0 && age_ns(self.last_replay) < LATELY_NS
    }

    /// Returns `true` if any group is to be polled now.
    pub(super) fn are_due(&self, read_all: bool) -> bool {
        self.groups.iter().any(|group| group.is_due(read_all))
    }

    /// Returns `true` if replays are expected soon, so that the resolver must not become idle.
    pub(super) fn are_expected(&self) -> bool {
        self.groups.iter().any(CaptureGroup::is_expected)
    }

    /// Reads the replays since the last call. Calls `complete` for each scope that was replayed. With `read_all`, polls
    /// groups whose next check is not due yet, too.
    pub(super) fn poll(
        &mut self,
        driver: &impl EventApi,
        anchor: Event,
        read_all: bool,
        mut complete: impl FnMut(ReplayedScope<'_>),
    ) {
        // A group that splits off in this loop is first polled in the next call.
        for group in 0..self.groups.len() {
            if self.groups[group].is_due(read_all) {
                self.notice(group, driver, anchor);
                self.read(group, driver, anchor, &mut complete);
            }
        }
    }

    /// Marks the members as due if the group was replayed.
    fn notice(&mut self, index: usize, driver: &impl EventApi, anchor: Event) {
        let group = &mut self.groups[index];
        group.last_poll = now();
        let first = group.members[0];
        let other = group.next_other();
        let has_moved = |member: usize| self.scopes[member].has_moved(driver, anchor);
        if has_moved(first) {
            for member in &self.groups[index].members {
                self.scopes[*member].is_due = true;
            }
        } else if let Some(other) = other
            && !self.scopes[other].is_due
            && has_moved(other)
            // Asked again after the other one: a replay may have begun after the first question.
            && !has_moved(first)
        {
            self.split_off(index, other);
        }
    }

    /// Moves a member that ran without the first one to a group of its own.
    fn split_off(&mut self, index: usize, member: usize) {
        let group = &mut self.groups[index];
        group.members.retain(|other| *other != member);
        // Without a capture id, no scope joins the new group.
        let mut single = CaptureGroup::new(0, group.stream_key, member);
        single.last_poll = now();
        self.groups.push(single);
        self.scopes[member].is_due = true;
    }

    /// Reads the members that are due, as far as the device has come.
    fn read(
        &mut self,
        group: usize,
        driver: &impl EventApi,
        anchor: Event,
        complete: &mut impl FnMut(ReplayedScope<'_>),
    ) {
        let mut have_later_passed = None;
        for position in 0..self.groups[group].members.len() {
            let member = self.groups[group].members[position];
            if !self.scopes[member].is_due {
                continue;
            }
            let Some(ns) = self.scopes[member].read_replay(driver, anchor) else {
                let later = || self.has_passed_later_member(group, driver, anchor);
                if *have_later_passed.get_or_insert_with(later) {
                    // This member takes no part in the replay.
                    continue;
                }
                // The device has not come to this member, nor to those after it.
                return;
            };
            self.last_replay = now();
            self.groups[group].has_run = true;
            let scope = &self.scopes[member];
            let children = scope.children.iter();
            let inside: f64 = children.map(|child| self.scopes[*child].last_ns).sum();
            complete(ReplayedScope {
                measurement: &scope.measurement,
                ns,
                own: (ns - inside).max(0.0),
                outermost: self.is_outermost(scope),
            });
        }
    }

    /// Returns `true` if a replay of the scope is not part of one of the same name. A scope of that name that was around it
    /// when it was captured, and is not part of the graph, takes no part in a replay.
    fn is_outermost(&self, scope: &CapturedScope) -> bool {
        scope.measurement.span.outermost
            || !self.scopes.iter().any(|other| scope.is_recursion_of(other))
    }

    /// Returns `true` if the device has passed a due member of the group: the last one, or another one in turn.
    fn has_passed_later_member(
        &mut self,
        group: usize,
        driver: &impl EventApi,
        anchor: Event,
    ) -> bool {
        let group = &mut self.groups[group];
        let probes = [group.members.last().copied(), group.next_other()];
        probes.into_iter().flatten().any(|member| {
            let scope = &self.scopes[member];
            scope.is_due && scope.has_moved(driver, anchor)
        })
    }

    /// Measures the known ends from another anchor from now on.
    pub(super) fn rebase(&mut self, driver: &impl EventApi, before: Event, after: Option<Event>) {
        for scope in &mut self.scopes {
            scope.rebase(driver, before, after);
        }
    }
}

impl Drop for CapturedScopes {
    /// Returns what the scopes hold, if the thread panicked.
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
