//! Measurements of what a scope itself costs.

use std::hint::black_box;
use std::thread::panicking;

use super::open::OpenScope;
use super::serial::Flags;
use crate::clock::{self, elapsed, has_counter, now, read_counter};
use crate::local::{self, Innermost};
use crate::own_cost::{SLOW_EVERY, Samples};
use crate::stats::StatCell;

/// The cell of the scopes that are opened here. Nothing reads it.
static CELL: StatCell = StatCell::new();

/// Opens and closes `calls` scopes without a trace in the statistics, to find out what a call costs. One thread at a
/// time may call this.
pub(crate) fn run_empty_scopes(calls: u32) {
    local::with_state(|state| {
        if state.innermost.get() == Innermost::ENDED {
            return;
        }
        let child_ticks = state.child_ticks.get();
        for _ in 0..calls {
            let mut open = OpenScope::push(state, &CELL);
            open.start = now();
            open.pop(state, elapsed(open.start, now()));
        }
        state.child_ticks.set(child_ticks);
    });
}

/// A sample of what one end of a scope or a poll takes on the slow path.
pub(super) struct Sample(Option<u64>);

impl Sample {
    /// Begins a sample if the scope with this serial is sampled.
    pub(super) fn begin(serial: u64) -> Self {
        Self((serial.is_multiple_of(SLOW_EVERY)).then(now))
    }

    /// [`begin`](Self::begin) for the scope that the thread opens next.
    pub(super) fn of_next() -> Self {
        let last = local::with_state(|state| state.last_serial.get());
        Self::begin(last.map_or(0, |last| last + 1))
    }

    /// Runs `f`, whose time is counted elsewhere.
    pub(super) fn without<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let before = self.0.map(|_| now());
        let result = f();
        if let (Some(start), Some(before)) = (&mut self.0, before) {
            *start += now().saturating_sub(before);
        }
        result
    }

    /// Ends the sample.
    pub(super) fn end(self, samples: &Samples) {
        if let Some(start) = self.0 {
            samples.note(now().saturating_sub(start));
        }
    }
}

/// An odd number, so that the median is one of the times.
const SCOPES: usize = 1001;

/// Measures the time between the two readings of the clock in a scope around nothing, and has the clock subtract that
/// from each time. One thread at a time may call this.
///
/// Between the readings, the scope stores what it replaced, and closing it begins; without this, a function that does
/// nothing would take some nanoseconds.
pub(crate) fn calibrate() {
    if !has_counter() || local::has_ended() {
        return;
    }
    let mut times = [0; SCOPES];
    for time in &mut times {
        let mut scope = None;
        open_empty(&mut scope);
        if let Some(open) = black_box(&scope) {
            *time = end_empty(open);
        }
    }
    times.sort_unstable();
    if let Some(median) = times.get(SCOPES / 2) {
        clock::set_cost(*median);
    }
}

/// The part of opening a scope that its time contains, in a function of its own as the fast path is.
#[inline(never)]
fn open_empty(scope: &mut Option<OpenScope>) {
    local::with_state(|state| {
        let mut open = OpenScope::push(state, &CELL);
        open.start = read_counter();
        *scope = Some(open);
    });
}

/// The part of closing a scope that its time contains. Returns the ticks between the readings.
#[inline(never)]
fn end_empty(open: &OpenScope) -> u64 {
    if panicking() {
        return 0;
    }
    local::with_state(|state| {
        let Some(serial) = open.if_innermost(state, Flags::NONE) else {
            return 0;
        };
        let newest = open.cell.prepare();
        let ticks = read_counter().wrapping_sub(open.start);
        open.restore_outer(state, 0);
        CELL.leave(serial);
        black_box(newest);
        ticks
    })
    .unwrap_or(0)
}
