//! The thread that runs the program's host functions when they are due.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use super::clock::ClockMode;
use super::code::SUCCESS;
use super::state::{LockedState, notify_all};

static STARTED: Once = Once::new();
static WOKEN: AtomicBool = AtomicBool::new(false);
static WAKE_LOCK: Mutex<()> = Mutex::new(());
static WAKE_UP: Condvar = Condvar::new();

/// Wakes the worker to look for due host functions. Starts it at the first call.
pub(crate) fn wake() {
    STARTED.call_once(|| {
        let name = String::from("simulated host functions");
        // If the thread cannot start, no host function runs, and calls that wait for one never
        // return.
        drop(thread::Builder::new().name(name).spawn(work));
    });
    let _bed = WAKE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    WOKEN.store(true, SeqCst);
    WAKE_UP.notify_one();
}

fn work() {
    super::thread::become_worker();
    loop {
        let mut state = LockedState::new();
        let now = state.clock.now();
        let Some((work, function, context)) = state.timeline.take_host_function(now) else {
            let left = match (state.timeline.next_host_function(), state.clock.pace()) {
                (Some(next), ClockMode::Real) => Duration::from_nanos(next - now),
                _ => Duration::from_secs(3_600),
            };
            drop(state);
            sleep(left);
            continue;
        };
        let status = state.context_failure(context).unwrap_or(SUCCESS);
        drop(state);
        function.call(status);
        let mut state = LockedState::new();
        state.timeline.running = None;
        let end = state.clock.now();
        state.complete(work, end);
        drop(state);
        notify_all();
    }
}

fn sleep(most: Duration) {
    let mut guard = WAKE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if !WOKEN.swap(false, SeqCst) {
        guard = WAKE_UP
            .wait_timeout(guard, most)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    drop(guard);
}
