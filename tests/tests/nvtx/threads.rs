//! Ranges on several threads, of futures, and in processes that are forked.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::thread;

use profiler_nvtx_recorder::{Call, Line};
use profiler_runtime::{MeasureFuture, measure_execution_time, scope};
use profiler_tests::nvtx::record;

#[measure_execution_time]
fn work() {}

/// A future that is pending once.
async fn once_pending() {
    let mut is_pending = true;
    std::future::poll_fn(move |_| {
        if std::mem::take(&mut is_pending) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

#[measure_execution_time]
async fn task() {
    work();
    once_pending().await;
    work();
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test(measuring)]
fn a_future_is_one_range_over_all_its_polls_and_threads() {
    let recorded = record("", || {
        let mut task = Box::pin(task());
        assert!(poll(task.as_mut()).is_pending());
        thread::spawn(move || assert!(poll(task.as_mut()).is_ready()))
            .join()
            .expect("no panic");
    });
    let expected = ["0>task", "0+work", "0-", "1+work", "1-", "1<task"];
    assert_eq!(recorded.ranges(), expected);
    let category = recorded.all(|call| match call {
        Call::Start(_, range) => Some((range.category, range.payload)),
        _ => None,
    });
    assert_eq!(category, [(3, None)]);
}

#[test(measuring)]
fn futures_that_are_polled_in_turn_overlap() {
    let recorded = record("", || {
        let mut one = pin!(once_pending().measure_execution_time("one").global_step(5));
        let mut other = pin!(once_pending().measure_execution_time("other"));
        assert!(poll(one.as_mut()).is_pending());
        assert!(poll(other.as_mut()).is_pending());
        assert!(poll(one.as_mut()).is_ready());
        assert!(poll(other.as_mut()).is_ready());
    });
    assert_eq!(recorded.ranges(), [">one", ">other", "<one", "<other"]);
    let payloads = recorded.all(|call| match call {
        Call::Start(_, range) => Some(range.payload),
        _ => None,
    });
    assert_eq!(payloads, [Some(5), None]);
}

#[test(measuring)]
fn the_range_of_a_future_ends_when_it_is_dropped_or_panics() {
    let recorded = record("", || {
        let mut dropped = Box::pin(task());
        assert!(poll(dropped.as_mut()).is_pending());
        drop(dropped);
        drop(task());
        let mut panics = Box::pin(async { panic!("on purpose") }.measure_execution_time("panics"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: Poll<()> = poll(panics.as_mut());
        }));
        assert!(caught.is_err());
        drop(panics);
    });
    let expected = [">task", "+work", "-", "<task", ">panics", "<panics"];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn a_poll_ends_the_ranges_of_guards_that_are_held_across_it() {
    let recorded = record("", || {
        let holds = async {
            let _guard = scope!("held");
            once_pending().await;
            work();
        };
        let mut holds = pin!(holds.measure_execution_time("holds"));
        assert!(poll(holds.as_mut()).is_pending());
        work();
        assert!(poll(holds.as_mut()).is_ready());
        work();
    });
    let expected = [
        ">holds", "+held", "-", "+work", "-", "+work", "-", "<holds", "+work", "-",
    ];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn eight_threads_have_balanced_ranges_and_register_each_name_once() {
    const THREADS: usize = 8;
    const CALLS: usize = 50;
    let recorded = record("", || {
        let barrier = Barrier::new(THREADS);
        // Attaches the tool, so that no thread is measured before that.
        work();
        thread::scope(|threads| {
            for number in 0..THREADS {
                let barrier = &barrier;
                let run = move || {
                    barrier.wait();
                    for call in 0..CALLS {
                        let _outer = scope!(format!("layer {}", call % 5));
                        work();
                    }
                };
                let named = thread::Builder::new().name(format!("worker {number}"));
                named.spawn_scoped(threads, run).expect("a thread starts");
            }
        });
    });
    let mut open = BTreeMap::<u32, usize>::new();
    let mut pushed = 0;
    for Line { thread, call, .. } in &recorded.lines {
        let depth = open.entry(*thread).or_default();
        match call {
            Call::Push(_) => (*depth, pushed) = (*depth + 1, pushed + 1),
            Call::Pop => *depth -= 1,
            Call::Wrong(what) => panic!("{what}"),
            _ => {}
        }
        assert!(*depth <= 2);
    }
    assert_eq!(pushed, 1 + THREADS * CALLS * 2);
    assert!(open.len() > THREADS && open.values().all(|depth| *depth == 0));
    let registered = recorded.all(|call| match call {
        Call::Register(name) => Some(name.clone()),
        _ => None,
    });
    let distinct: BTreeSet<_> = registered.iter().collect();
    assert_eq!((registered.len(), distinct.len()), (6, 6), "{registered:?}");
    let domains =
        recorded.all(|call| matches!(call, Call::Domain(name) if name == "profiler").then_some(()));
    assert_eq!(domains.len(), 1);
    let mut names = recorded.all(|call| match call {
        Call::Thread(_, name) => Some(name.clone()),
        _ => None,
    });
    names.retain(|name| name.starts_with("worker"));
    names.sort_unstable();
    let expected: Vec<_> = (0..THREADS)
        .map(|number| format!("worker {number}"))
        .collect();
    assert_eq!(names, expected);
}

#[test(measuring)]
fn calls_in_destructors_of_thread_locals_are_ranges() {
    struct Measures;
    impl Drop for Measures {
        fn drop(&mut self) {
            work();
        }
    }
    thread_local! {
        static AT_END: RefCell<Option<Measures>> = const { RefCell::new(None) };
    }
    let recorded = record("", || {
        thread::spawn(|| {
            AT_END.set(Some(Measures));
            work();
        })
        .join()
        .expect("no panic");
    });
    assert_eq!(recorded.ranges(), ["+work", "-", "+work", "-"]);
}

#[test(measuring)]
#[cfg(unix)]
fn a_forked_child_gives_no_ranges_and_its_parent_continues() {
    let recorded = record("", || {
        let guard = scope!("around");
        // SAFETY: the child calls measured functions and exits. No other thread runs.
        let child = unsafe { libc::fork() };
        if child == 0 {
            work();
            drop(guard);
            // SAFETY: touches no memory.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: the status is valid for writes.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        work();
        drop(guard);
    });
    assert!(recorded.lines.iter().all(|line| line.process == 0));
    assert_eq!(recorded.ranges(), ["+around", "+work", "-", "-"]);
}
