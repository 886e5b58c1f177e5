//! Calls that a thread makes while it ends, in the destructor of a thread-local.

use std::cell::Cell;
use std::thread;

use crate::subjects;

/// A batch that runs in the destructor.
struct Late(Cell<Option<Batch>>);

#[derive(Clone, Copy)]
struct Batch {
    calls: u64,
    function: fn(u64) -> u64,
}

thread_local! {
    static LATE: Late = const { Late(Cell::new(None)) };
}

impl Drop for Late {
    fn drop(&mut self) {
        if let Some(Batch { calls, function }) = self.0.get() {
            bench_harness::batch(calls, function);
        }
    }
}

/// Runs a batch on a new thread, after the profiler's thread-locals have been destroyed.
pub(crate) fn batch(calls: u64, function: fn(u64) -> u64) {
    let thread = thread::spawn(move || {
        // Destructors run in reverse order of registration. This one is registered before those of
        // the profiler, which the first measured call registers.
        LATE.with(|late| late.0.set(Some(Batch { calls, function })));
        subjects::plain(0);
    });
    if thread.join().is_err() {
        println!("a measured thread has panicked");
    }
}
