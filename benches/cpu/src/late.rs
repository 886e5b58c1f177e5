//! Calls that a thread makes while it ends, in the destructor of a thread-local.

use std::cell::Cell;
use std::thread;

use crate::measured::measured;

/// A function that makes calls, and how many.
type Batch = (fn(u64), u64);

/// A batch that runs in the destructor.
struct Late(Cell<Option<Batch>>);

thread_local! {
    static LATE: Late = const { Late(Cell::new(None)) };
}

impl Drop for Late {
    fn drop(&mut self) {
        if let Some((run, calls)) = self.0.get() {
            run(calls);
        }
    }
}

/// Runs a batch on a new thread, after the profiler's thread-locals have been destroyed.
pub(crate) fn batch(run: fn(u64), calls: u64) {
    let thread = thread::spawn(move || {
        // Destructors run in reverse order of registration. This one is registered before those of
        // the profiler, which the first measured call registers.
        LATE.with(|late| late.0.set(Some((run, calls))));
        measured(0);
    });
    thread.join().expect("no measured thread panics");
}
