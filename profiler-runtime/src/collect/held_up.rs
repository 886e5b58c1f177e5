//! Names the logger that holds up the others: the collector calls one at a time.
//!
//! # Protocol
//!
//! The collector stores the name before the time at which a call began, and zero as the time when it has returned. Both
//! stores are releases, and both loads acquires. A reader that finds the same time before and after it reads the name
//! has the name of that call: the name of a later call would make visible the zero that was stored before it. (No later call can have the same
//! time, since only one that began a second ago is named.)

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use profiler_host::background::{self, Calls};
use profiler_host::diagnostics;

use super::contain::name_of;
use crate::clock::clock;

/// How long a call may take before it holds up the others.
const PATIENCE: Duration = Duration::from_secs(1);

/// When the call began that the collector is in, in ticks; zero if it is in none.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// The name that the call is for.
static NAME: AtomicU32 = AtomicU32::new(0);

/// Runs a call of user code on the collector's thread.
pub(super) fn call<T>(id: u32, f: impl FnOnce() -> T) -> T {
    NAME.store(id, Release);
    SINCE.store(clock().ticks().max(1), Release);
    let result = f();
    leave();
    result
}

/// Notes that the collector is in no call: it returned, or the profiler itself panicked.
pub(super) fn leave() {
    SINCE.store(0, Release);
}

/// Returns when the call began that holds up the others, and its name.
fn held_up() -> Option<(u64, u32)> {
    let since = SINCE.load(Acquire);
    let id = NAME.load(Acquire);
    if since == 0 || SINCE.load(Relaxed) != since {
        return None;
    }
    let age = clock().nanoseconds(clock().ticks().saturating_sub(since) as f64);
    (age >= PATIENCE.as_nanos() as f64).then_some((since, id))
}

/// Warns of a logger that has not returned. Not for measured threads: the warning may reach user code.
pub(super) fn warn() {
    let Some((_, id)) = held_up() else { return };
    diagnostics::warn_once(&format!(
        "the logger of `{}` has not returned for over a second: other loggers wait for it, and entries are dropped and \
         counted once a ring is full; let it pass slow work to a thread of the program",
        name_of(id)
    ));
}

/// [`warn`] for a thread that finds a ring full: another thread says it, once for each call.
#[cold]
pub(super) fn warn_elsewhere() {
    static WARNED: AtomicU64 = AtomicU64::new(0);
    if SINCE.load(Relaxed) == WARNED.load(Relaxed) {
        return;
    }
    if let Some((since, _)) = held_up()
        && WARNED.swap(since, Relaxed) != since
    {
        // If the system starts no thread, the next flush warns.
        let _ = background::spawn("profiler-warning", Calls::Unmeasured, warn, || ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_holds_up_the_others_once_it_has_lasted_a_second() {
        // No collector runs in the unit tests.
        assert_eq!(held_up(), None);
        call(7, || {
            assert_eq!(held_up(), None);
            let began = clock().ticks() - clock().in_ticks(PATIENCE);
            SINCE.store(began, Relaxed);
            assert_eq!(held_up(), Some((began, 7)));
        });
        assert_eq!(held_up(), None);
    }
}
