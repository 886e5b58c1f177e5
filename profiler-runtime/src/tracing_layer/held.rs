//! Times of spans that are held back, until it is known whether a span of their call site is one call or as many as it has
//! times.
//!
//! Nothing tells the first spans of a call site from those of futures before one of them has closed: see
//! [`futures`](super::futures). Their times wait here, and their names count them as open spans. A span has a place here from its
//! first enter to its end, or until it has been entered [`MAX_TIMES`] times: a span that lives as long as the program is not of a
//! future. All of this is slow, and the lock, which few spans take, is held for moments only.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_host::sync::{Lock, ReentrancyGuard};

use super::sites::{by_number, with_cell};
use crate::name::{self, Name, maintain};
use crate::scope::Part;
use crate::stats::{Ending, StatCell};

/// The spans that are held back at once. Further ones count each of their times as a call.
const MAX_SPANS: usize = 256;
/// The times of a span that are held back.
pub(super) const MAX_TIMES: usize = 64;

static HELD: Lock<Vec<HeldSpan>> = Lock::new(Vec::new());
/// How many there are, so that others need not take the lock.
static SPANS: AtomicUsize = AtomicUsize::new(0);

/// A span whose times are held back.
struct HeldSpan {
    layer: u64,
    id: u64,
    name: Option<&'static Name>,
    times: Vec<HeldTime>,
}

/// A time of a span from enter to exit, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTime {
    pub(super) start: u64,
    pub(super) part: Part,
}

/// What became of a time.
pub(super) enum Held {
    Kept,
    /// The span has too many: these are all of them, and none is held back any more.
    Full(Vec<HeldTime>),
    /// The span is not among those whose times are held back.
    Unknown,
}

impl Drop for HeldSpan {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            name.note_open_spans(-1);
        }
    }
}

/// Runs `f` on the spans. Returns `None` if this thread does so already: the list is allocated once, by an allocator that may close
/// spans of its own. Nothing else is allocated or freed with the lock held.
fn with_held<T>(f: impl FnOnce(&mut Vec<HeldSpan>) -> T) -> Option<T> {
    thread_local! {
        static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_INSIDE.replace(true) {
        return None;
    }
    let mut held = HELD.lock();
    let result = f(&mut held);
    SPANS.store(held.len(), Relaxed);
    drop(held);
    IS_INSIDE.set(false);
    Some(result)
}

fn place(held: &[HeldSpan], layer: u64, id: u64) -> Option<usize> {
    held.iter()
        .position(|span| span.id == id && span.layer == layer)
}

/// Returns `true` if the times of a span are held back that is being entered. If its call site is undecided, they are from now on,
/// unless there are too many such spans.
pub(super) fn holds(layer: u64, id: u64, site: u32) -> bool {
    let is_undecided = by_number(site).is_undecided();
    // A thread that enters the span has been told of it by one that knows, so it sees the count.
    if !is_undecided && SPANS.load(Relaxed) == 0 {
        return false;
    }
    let is_known = with_held(|held| place(held, layer, id).is_some());
    if is_known == Some(true) || !is_undecided {
        return is_known == Some(true);
    }
    // An allocator may be measured itself.
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut times = Vec::new();
    if times.try_reserve_exact(MAX_TIMES).is_err() {
        return false;
    }
    let decision = by_number(site).last_decision();
    let name = decision.and_then(|decision| name::by_id(decision.id()));
    if let Some(name) = name {
        name.note_open_spans(1);
    }
    let mut new = Some(HeldSpan {
        layer,
        id,
        name,
        times,
    });
    // What is not taken is dropped with the lock released.
    let is_held = with_held(|held| {
        // Another thread may have entered it at the same time.
        if place(held, layer, id).is_some() {
            return true;
        }
        if held.len() >= MAX_SPANS || held.try_reserve(MAX_SPANS - held.len()).is_err() {
            return false;
        }
        held.extend(new.take());
        true
    });
    is_held.unwrap_or(false)
}

/// Holds a time back.
pub(super) fn hold(layer: u64, id: u64, time: HeldTime) -> Held {
    let outcome = with_held(|held| {
        let Some(place) = place(held, layer, id) else {
            return Held::Unknown;
        };
        let Some(span) = held.get_mut(place) else {
            return Held::Unknown;
        };
        span.times.push(time);
        if span.times.len() < MAX_TIMES {
            return Held::Kept;
        }
        Held::Full(std::mem::take(&mut held.swap_remove(place).times))
    });
    outcome.unwrap_or(Held::Unknown)
}

/// Takes the times of a span that is closed, if they were held back.
pub(super) fn take(layer: u64, id: u64) -> Option<Vec<HeldTime>> {
    if SPANS.load(Relaxed) == 0 {
        return None;
    }
    with_held(|held| {
        let place = place(held, layer, id)?;
        Some(std::mem::take(&mut held.swap_remove(place).times))
    })
    .flatten()
}

/// Forgets the spans of a layer that is dropped.
pub(super) fn forget(layer: u64) {
    let next = |held: &mut Vec<HeldSpan>| {
        let place = held.iter().position(|span| span.layer == layer)?;
        Some(held.swap_remove(place))
    };
    while SPANS.load(Relaxed) > 0 && with_held(next).flatten().is_some() {}
}

/// Counts each time as a call.
pub(super) fn count_each(site: u32, times: &[HeldTime]) {
    with_cell(site, |cell| {
        for time in times {
            count(
                cell,
                (time.part.elapsed, time.part.own),
                time.part.outermost,
            );
            if time.part.panicked {
                cell.count_ending(Ending::Panicked);
            }
        }
    });
}

/// Counts all times as those of one future.
pub(super) fn count_as_one(site: u32, times: &[HeldTime]) {
    let starts = times.iter().map(|time| time.start);
    let ends = times.iter().map(|time| time.part.end);
    let (Some(start), Some(end)) = (starts.min(), ends.max()) else {
        return;
    };
    let elapsed = crate::clock::elapsed(start, end);
    let sum = |of: fn(&HeldTime) -> i64| times.iter().map(of).sum::<i64>();
    let outermost = times.first().is_some_and(|first| first.part.outermost);
    with_cell(site, |cell| {
        cell.begin_future();
        count(cell, (elapsed, sum(|time| time.part.own)), outermost);
        cell.count_future(sum(|time| time.part.elapsed));
        if times.iter().any(|time| time.part.panicked) {
            cell.count_ending(Ending::Panicked);
        }
    });
}

fn count(cell: &StatCell, (elapsed, own): (i64, i64), outermost: bool) {
    if cell.count(elapsed, own, outermost) {
        maintain(cell);
    }
}
