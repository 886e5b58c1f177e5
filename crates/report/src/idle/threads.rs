//! The innermost scope of each thread at each time.

use std::collections::{BTreeSet, HashMap};

use crate::in_order::InOrder as _;
use crate::timeline::{SliceKind, Timeline, TrackKind};
use crate::walk::NONE;

/// A time in which one call was the innermost on a thread; [`NONE`] for no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Innermost {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) call: u32,
}

/// The times of each thread, in their order. Between them, the thread was in no scope.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The number of the thread of each track.
    thread_of: Vec<usize>,
    times: Vec<Vec<Innermost>>,
    /// The process of each thread.
    processes: Vec<(Option<u64>, u64)>,
}

impl Threads {
    /// `callers` are the calls that slices belong to.
    pub(super) fn of(timeline: &Timeline, callers: &[u32]) -> Self {
        let mut numbers = HashMap::new();
        // Scopes that cross others are on a further track of their thread.
        let thread_of: Vec<usize> = timeline
            .tracks
            .iter()
            .map(|track| {
                let thread = (track.process, track.rank, track.id, track.kind);
                let next = numbers.len();
                *numbers.entry(thread).or_insert(next)
            })
            .collect();
        let mut processes = vec![(None, 0); numbers.len()];
        for ((process, rank, ..), number) in &numbers {
            processes[*number] = (*rank, *process);
        }
        let mut scopes: Vec<Vec<Scope>> = vec![Vec::new(); numbers.len()];
        for (index, slice) in (0..).zip(&timeline.slices) {
            let call = match slice.kind {
                SliceKind::Call => index,
                SliceKind::FuturePoll => callers[index as usize],
                _ => continue,
            };
            let track = timeline.tracks.get(slice.track as usize);
            if slice.duration_ns <= 0
                || track.is_none_or(|track| track.kind != TrackKind::HostThread)
            {
                continue;
            }
            let future = timeline.slices.get(call as usize);
            scopes[thread_of[slice.track as usize]].push(Scope {
                start: slice.start_ns,
                end: slice.start_ns.saturating_add(slice.duration_ns),
                index,
                call,
                open_from: match (slice.kind, future) {
                    (SliceKind::FuturePoll, Some(future)) => future.start_ns,
                    _ => slice.start_ns,
                },
            });
        }
        // A thread that launches inside of an entered handle works for the scope of that from then on.
        for launch in &timeline.launches {
            let (Some(entered), Some(parent)) = (launch.since_entered_ns, launch.parent) else {
                continue;
            };
            let (Some(thread), Some(parent)) = (
                thread_of.get(launch.track as usize),
                timeline
                    .slices
                    .get(parent as usize)
                    .map(|slice| match slice.kind {
                        SliceKind::FuturePoll => callers[parent as usize],
                        _ => parent,
                    }),
            ) else {
                continue;
            };
            let start = launch.start_ns.saturating_sub(entered);
            scopes[*thread].push(Scope {
                start,
                end: launch.start_ns.saturating_add(launch.duration_ns.max(0)),
                index: parent,
                call: parent,
                open_from: start,
            });
        }
        Self {
            thread_of,
            times: scopes.into_iter().map(times).collect(),
            processes,
        }
    }

    /// Returns the number of the thread of a track.
    pub(super) fn of_track(&self, track: u32) -> Option<usize> {
        self.thread_of.get(track as usize).copied()
    }

    /// Returns how many threads there are.
    pub(super) fn count(&self) -> usize {
        self.times.len()
    }

    /// Calls `each` with the times of calls on the other threads of a process.
    pub(super) fn others_during(
        &self,
        track: u32,
        span: (i64, i64),
        mut each: impl FnMut(i64, i64, u32),
    ) {
        let Some(own) = self.of_track(track) else {
            return;
        };
        let is_other =
            |thread: &usize| *thread != own && self.processes[*thread] == self.processes[own];
        for thread in (0..self.count()).filter(is_other) {
            during(&self.times[thread], span, |from, to, call| {
                if let Some(call) = call {
                    each(from, to, call);
                }
            });
        }
    }

    /// Calls `each` with the parts of a time on the thread of a track, and the innermost call in each.
    pub(super) fn during(
        &self,
        track: u32,
        span: (i64, i64),
        each: impl FnMut(i64, i64, Option<u32>),
    ) {
        let thread = self.of_track(track);
        let times = thread.map_or(&[][..], |thread| &self.times[thread]);
        during(times, span, each);
    }
}

fn during(
    times: &[Innermost],
    (from, to): (i64, i64),
    mut each: impl FnMut(i64, i64, Option<u32>),
) {
    let first = times.partition_point(|time| time.end <= from);
    let mut at = from;
    for time in &times[first..] {
        if time.start >= to {
            break;
        }
        if time.start > at {
            each(at, time.start, None);
            at = time.start;
        }
        let end = time.end.min(to);
        each(at, end, Some(time.call).filter(|call| *call != NONE));
        at = end;
    }
    if at < to {
        each(at, to, None);
    }
}

/// A scope or a poll on a thread.
#[derive(Clone, Copy)]
struct Scope {
    start: i64,
    end: i64,
    index: u32,
    /// The call; of a poll, its future.
    call: u32,
    /// From when on the call is open if nothing else is: of a poll, when the future was first polled.
    open_from: i64,
}

/// Returns the innermost call of a thread over time.
fn times(mut scopes: Vec<Scope>) -> Vec<Innermost> {
    // A scope comes after those around it; of two at the same start, that is the longer one.
    scopes.order_by_key(|scope| (scope.start, std::cmp::Reverse(scope.end), scope.index));
    let mut times: Vec<Innermost> = Vec::with_capacity(scopes.len());
    let mut push = |start: i64, end: i64, call: u32| {
        if start >= end {
            return;
        }
        match times.last_mut() {
            Some(last) if last.end == start && last.call == call => last.end = end,
            _ => times.push(Innermost { start, end, call }),
        }
    };
    // Of those that are open, the last one is the innermost.
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut ends: std::collections::BinaryHeap<std::cmp::Reverse<(i64, usize)>> =
        std::collections::BinaryHeap::new();
    let mut at = i64::MIN;
    for (place, scope) in scopes.iter().enumerate() {
        while let Some(std::cmp::Reverse((end, ended))) = ends.peek().copied() {
            if end > scope.start {
                break;
            }
            if let Some(innermost) = open.last() {
                push(at, end, scopes[*innermost].call);
            }
            at = at.max(end);
            ends.pop();
            open.remove(&ended);
        }
        match open.last() {
            Some(innermost) => push(at, scope.start, scopes[*innermost].call),
            // A future is open between its polls, if nothing else is.
            None => push(at.max(scope.open_from), scope.start, scope.call),
        }
        at = scope.start;
        open.insert(place);
        ends.push(std::cmp::Reverse((scope.end, place)));
    }
    while let Some(std::cmp::Reverse((end, ended))) = ends.pop() {
        if let Some(innermost) = open.last() {
            push(at, end, scopes[*innermost].call);
        }
        at = at.max(end);
        open.remove(&ended);
    }
    times
}
