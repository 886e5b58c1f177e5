//! A global allocator may be measured: what the profiler itself allocates is not, and nothing waits for
//! itself.

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicU64;
#[cfg(not(feature = "strip"))]
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use profiler_runtime::{flush, measure_execution_time, scope, summary};
use profiler_tests::{measuring, row};

struct Measured;

#[measure_execution_time(name = "allocator: alloc")]
fn measured_alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the layout is that of the caller, who keeps the contract of `GlobalAlloc::alloc`.
    unsafe { System.alloc(layout) }
}

#[cfg_attr(
    feature = "strip",
    allow(dead_code, reason = "only an argument of the attribute uses it")
)]
static LOGGED: AtomicU64 = AtomicU64::new(0);

#[measure_execution_time(name = "allocator: dealloc", log = |_, _, _| _ = LOGGED.fetch_add(1, Relaxed))]
fn measured_dealloc(memory: *mut u8, layout: Layout) {
    // SAFETY: memory and layout are those of the caller, who keeps the contract of
    // `GlobalAlloc::dealloc`.
    unsafe { System.dealloc(memory, layout) }
}

// SAFETY: both functions do what `System` does, which keeps the contract; what surrounds that does not
// touch the memory, and neither unwinds.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        measured_alloc(layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        measured_dealloc(memory, layout);
    }
}

#[global_allocator]
static ALLOCATOR: Measured = Measured;

#[test]
fn an_allocator_that_is_measured_does_not_deadlock() {
    for _ in 0..8 {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                thread::spawn(move || {
                    for round in 0..50 {
                        let _scope = scope!(format!("allocator: {number} {round}"));
                        let _vector = vec![round; 100];
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!summary().to_json().is_empty());
    }
    flush(Duration::from_secs(20));
    let allocated = row("allocator: alloc").calls;
    assert_eq!(allocated >= 8 * 8 * 50, measuring(), "{allocated}");
    assert_eq!(
        row("allocator: 7 49").calls,
        profiler_tests::if_measuring(8)
    );
}
