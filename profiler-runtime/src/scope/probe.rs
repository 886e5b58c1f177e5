//! A measurement of what the profiler itself costs.

use super::open::OpenScope;
use crate::clock::{elapsed, now};
use crate::local;
use crate::stats::StatCell;

/// Opens and closes `calls` scopes without a trace in the statistics, to find out what a call costs. One thread at a
/// time may call this.
pub(crate) fn run_empty_scopes(calls: u32) {
    static CELL: StatCell = StatCell::new();
    local::with_state(|state| {
        if state.innermost.get() == local::ENDED {
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
