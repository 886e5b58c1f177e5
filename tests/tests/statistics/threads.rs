//! Threads that come and go, destructors that run when thread-locals are gone: every call is counted,
//! and the cells of ended threads are used again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use profiler_runtime::__private::{blocks_made, cells_made};
use profiler_runtime::report::DropReason;
use profiler_runtime::{flush, measure_execution_time, scope, summary};
use profiler_tests::CpuTimes;
use profiler_tests::{if_measuring, row, work};

static LOGGED: AtomicU64 = AtomicU64::new(0);

#[measure_execution_time(name = "threads: call", log = |_, _, _| _ = LOGGED.fetch_add(1, Relaxed))]
fn call() {}

#[measure_execution_time(name = "threads: plain")]
fn plain() {}

#[measure_execution_time(name = "threads: other")]
fn other() {}

/// Entries that were dropped for want of a GPU time, where there is a GPU.
fn timeless() -> u64 {
    let dropped = summary().dropped.into_iter();
    dropped
        .filter(|(reason, _)| *reason == DropReason::NoCudaTime)
        .map(|(_, entries)| entries)
        .sum()
}

#[test]
fn sixty_four_threads_come_and_go() {
    let before = timeless();
    for _ in 0..20 {
        thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        call();
                        plain();
                    }
                });
            }
        });
    }
    let report = flush(std::time::Duration::from_secs(20));
    assert_eq!(report.left, 0);
    assert_eq!(row("threads: call").calls, if_measuring(64_000));
    assert_eq!(row("threads: plain").calls, if_measuring(64_000));
    let dropped = row("threads: call").dropped_entries + timeless() - before;
    assert_eq!(
        LOGGED.load(Relaxed) + dropped,
        if_measuring(64_000),
        "logged or counted"
    );
}

#[test]
fn ten_thousand_threads_share_the_cells_of_a_few() {
    let (before, blocks) = (cells_made(), blocks_made());
    for _ in 0..1_250 {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _scope = scope!("threads: many");
                });
            }
        });
    }
    assert_eq!(row("threads: many").calls, if_measuring(10_000));
    let made = cells_made() - before;
    // Scoped threads may still be ending while the next ones start.
    assert!(
        made <= 64,
        "{made} cells for at most some 8 threads at a time"
    );
    let made = blocks_made() - blocks;
    assert!(
        made <= 64,
        "{made} blocks for at most some 8 threads at a time"
    );
}

#[test]
fn three_thousand_names_cost_one_cell_each_on_a_thread() {
    let before = cells_made();
    thread::spawn(|| {
        for _ in 0..2 {
            for number in 0..3_000 {
                let _scope = scope!(format!("threads: name {number}"));
            }
        }
    })
    .join()
    .unwrap();
    assert!(cells_made() - before <= 3_000);
    assert_eq!(row("threads: name 2999").calls, if_measuring(2));
}

/// Measured calls while thread-locals are destroyed, in whatever order that happens.
struct AtTheEnd(&'static str);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        for _ in 0..3 {
            let _scope = scope!("threads: late");
            call_late();
        }
    }
}

static LATE: AtomicU64 = AtomicU64::new(0);

#[measure_execution_time(name = "threads: late logged", log = |_, _, _| _ = LATE.fetch_add(1, Relaxed))]
fn call_late() {}

thread_local! {
    static FIRST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    static HELD: RefCell<Option<profiler_runtime::__private::Scope>> = const { RefCell::new(None) };
    static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn calls_from_destructors_of_thread_locals_are_counted() {
    let before = timeless();
    thread::spawn(|| {
        FIRST
            .with_borrow_mut(|slot| *slot = Some(AtTheEnd("registered before the profiler's own")));
        other();
        LAST.with_borrow_mut(|slot| *slot = Some(AtTheEnd("registered after them")));
        assert_eq!(
            FIRST.with_borrow(|slot| slot.as_ref().map(|end| end.0.len())),
            Some(36)
        );
    })
    .join()
    .unwrap();
    assert_eq!(flush(std::time::Duration::from_secs(20)).left, 0);
    assert_eq!(row("threads: late").calls, if_measuring(6));
    assert_eq!(row("threads: late logged").calls, if_measuring(6));
    assert_eq!(LATE.load(Relaxed) + timeless() - before, if_measuring(6));
}

/// A call within another one, while thread-locals are destroyed.
struct NestedAtTheEnd;

impl Drop for NestedAtTheEnd {
    fn drop(&mut self) {
        let _around = scope!("threads: late, around");
        let _inside = scope!("threads: late, inside");
        work(50);
    }
}

#[cfg(unix)]
#[test]
fn calls_from_destructors_of_thread_locals_are_nested_as_any() {
    thread_local! {
        static NESTED: RefCell<Option<NestedAtTheEnd>> = const { RefCell::new(None) };
    }
    thread::spawn(|| {
        // Registered first, so that it is destroyed last.
        NESTED.with_borrow_mut(|slot| *slot = Some(NestedAtTheEnd));
        other();
    })
    .join()
    .unwrap();
    let (around, inside) = (row("threads: late, around"), row("threads: late, inside"));
    assert_eq!(
        (around.calls, inside.calls),
        (if_measuring(1), if_measuring(1))
    );
    let own = around.cpu().total_ns - inside.cpu().total_ns;
    assert!(
        (around.cpu().self_ns - own).abs() < 1.0,
        "{around:?} {inside:?}"
    );
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_guard_held_by_a_thread_local_is_counted_when_that_is_destroyed() {
    static SITE: profiler_runtime::__private::CallSite = profiler_runtime::__private::NEW_SITE;
    thread::spawn(|| {
        // Registered first, so that it is destroyed last.
        HELD.with_borrow_mut(|slot| *slot = Some(SITE.enter_named("threads: held")));
        other();
    })
    .join()
    .unwrap();
    let row = row("threads: held");
    assert_eq!((row.calls, row.open), (if_measuring(1), 0));
    assert!(row.calls == 0 || row.cpu().total_ns > 0.0);
}

/// Measured calls after all thread-locals are gone: from the destructors of a thread's POSIX keys, which come last.
#[cfg(unix)]
#[test]
fn calls_from_destructors_of_posix_keys_are_counted() {
    extern "C" fn call_last(_: *mut std::ffi::c_void) {
        for _ in 0..3 {
            let _around = scope!("threads: last");
            let _inside = scope!("threads: last, inside");
        }
    }

    // The profiler's own key is made when the first thread ends, and keys have their turns in that order.
    thread::spawn(other).join().unwrap();
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` may be written; the destructor accepts any value of the key.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(call_last)) };
    assert_eq!(made, 0);
    for _ in 0..2 {
        thread::spawn(move || {
            other();
            // SAFETY: the key was made above, and what is set is never read through.
            let set = unsafe { libc::pthread_setspecific(key, (&raw const key).cast()) };
            assert_eq!(set, 0);
        })
        .join()
        .unwrap();
    }
    for name in ["threads: last", "threads: last, inside"] {
        let row = row(name);
        assert_eq!((row.calls, row.open), (if_measuring(6), 0), "{name}");
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn forgotten_guards_of_ended_threads_take_no_memory() {
    static SITE: profiler_runtime::__private::CallSite = profiler_runtime::__private::NEW_SITE;
    let before = cells_made();
    for _ in 0..1_000 {
        thread::spawn(|| {
            drop(SITE.enter_named("threads: forgotten"));
            std::mem::forget(SITE.enter_named("threads: forgotten"));
        })
        .join()
        .unwrap();
    }
    let made = cells_made() - before;
    assert!(made <= 4, "{made} cells for one thread at a time");
    let row = row("threads: forgotten");
    assert_eq!(
        (row.calls, row.primitive_calls, row.open),
        (
            if_measuring(1_000),
            if_measuring(1_000),
            if_measuring(1_000)
        )
    );
}

/// Ends while another thread is open in the cell that its own thread has given back.
#[cfg(not(feature = "strip"))]
struct EndsBeside(Option<profiler_runtime::__private::Scope>);

#[cfg(not(feature = "strip"))]
static BESIDE: profiler_runtime::__private::CallSite = profiler_runtime::__private::NEW_SITE;

#[cfg(not(feature = "strip"))]
impl Drop for EndsBeside {
    fn drop(&mut self) {
        let guard = self.0.take();
        let (opened, is_open) = std::sync::mpsc::channel();
        let (close, is_closed) = std::sync::mpsc::channel::<()>();
        let beside = thread::spawn(move || {
            let _scope = BESIDE.enter_named("threads: beside");
            opened.send(()).unwrap();
            let _ = is_closed.recv();
        });
        is_open.recv().unwrap();
        drop(guard);
        drop(close);
        beside.join().unwrap();
    }
}

#[cfg(not(feature = "strip"))]
#[test]
fn a_guard_that_ends_late_leaves_the_calls_of_others_alone() {
    thread_local! {
        static LATE_GUARD: RefCell<Option<EndsBeside>> = const { RefCell::new(None) };
    }
    thread::spawn(|| {
        // Registered first, so that it is destroyed after the profiler's own.
        LATE_GUARD.with_borrow_mut(|slot| *slot = Some(EndsBeside(None)));
        let guard = BESIDE.enter_named("threads: beside");
        LATE_GUARD.with_borrow_mut(|slot| {
            if let Some(late) = slot {
                late.0 = Some(guard);
            }
        });
    })
    .join()
    .unwrap();
    let row = row("threads: beside");
    assert_eq!(
        (row.calls, row.primitive_calls, row.open),
        (if_measuring(2), if_measuring(2), 0)
    );
    assert_eq!(row.out_of_order, 0);
}
