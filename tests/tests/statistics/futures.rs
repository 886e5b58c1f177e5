//! A future's scope belongs to its task: from its first poll to its end, whatever is polled between.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use profiler_runtime::{MeasureFuture, measure_execution_time, scope};
use profiler_tests::CpuTimes;
use profiler_tests::{if_measuring, measuring, row, work};

/// Gives the others a turn, once.
async fn turn() {
    let mut waited = false;
    std::future::poll_fn(|_| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        Poll::Pending
    })
    .await;
}

fn poll(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

#[measure_execution_time(name = "futures: one")]
async fn one() {
    work(100);
    turn().await;
    work(100);
}

#[measure_execution_time(name = "futures: other")]
async fn other() {
    work(300);
    turn().await;
    work(300);
}

#[test]
fn futures_that_are_polled_in_turn_are_not_each_others_parents() {
    let (mut one, mut other) = (pin!(one()), pin!(other()));
    assert!(!poll(one.as_mut()) && !poll(other.as_mut()));
    assert!(poll(one.as_mut()) && poll(other.as_mut()));
    let (one, other) = (row("futures: one"), row("futures: other"));
    assert_eq!((one.calls, one.futures), (if_measuring(1), if_measuring(1)));
    for row in [&one, &other] {
        assert!(
            (row.polled_ns - row.cpu().self_ns).abs() < 1.0,
            "{} has no children",
            row.name
        );
        assert_eq!(row.primitive_calls, row.calls);
    }
    if measuring() {
        assert!(one.polled_ns >= 200e3 && one.polled_ns < one.cpu().total_ns);
        assert!(
            one.cpu().total_ns >= 500e3,
            "it waited while the other worked"
        );
        assert!(other.polled_ns >= 600e3);
    }
}

#[test]
fn a_scope_inside_a_poll_is_a_child_of_the_future() {
    let child = async {
        {
            let _scope = scope!("futures: child");
            work(200);
        }
        turn().await;
        work(100);
    };
    let mut parent = pin!(child.measure_execution_time("futures: parent"));
    assert!(!poll(parent.as_mut()) && poll(parent.as_mut()));
    let (parent, child) = (row("futures: parent"), row("futures: child"));
    let difference = parent.polled_ns - parent.cpu().self_ns - child.cpu().total_ns;
    assert!(difference.abs() < 1.0, "{difference} ns unaccounted for");
    assert_eq!(child.calls, if_measuring(1));
}

#[test]
fn a_scope_around_a_poll_is_its_parent() {
    {
        let _around = scope!("futures: around");
        work(100);
        assert!(poll(pin!(
            async { work(200) }.measure_execution_time("futures: within")
        )));
    }
    let (around, within) = (row("futures: around"), row("futures: within"));
    let difference = around.cpu().total_ns - around.cpu().self_ns - within.polled_ns;
    assert!(difference.abs() < 1.0, "{difference} ns unaccounted for");
}

#[test]
fn a_future_that_is_dropped_midway_is_counted_and_flagged() {
    {
        let mut future = pin!(turn().measure_execution_time("futures: dropped"));
        assert!(!poll(future.as_mut()));
    }
    drop(turn().measure_execution_time("futures: never polled"));
    let row_dropped = row("futures: dropped");
    assert_eq!(
        (row_dropped.calls, row_dropped.dropped_futures),
        (if_measuring(1), if_measuring(1))
    );
    assert_eq!(row("futures: never polled").calls, 0);
}

#[test]
fn a_future_that_panics_is_counted_and_flagged() {
    let result = std::panic::catch_unwind(|| {
        poll(pin!(
            async { panic!("as asked") }.measure_execution_time("futures: panics")
        ))
    });
    assert!(result.is_err());
    let row = row("futures: panics");
    assert_eq!(
        (row.calls, row.panicked, row.dropped_futures),
        (if_measuring(1), if_measuring(1), 0)
    );
}

#[test]
fn a_guard_held_across_polls_spoils_only_its_own_self_time() {
    fn child(microseconds: u64) {
        let _scope = scope!("futures: held child");
        work(microseconds);
    }
    let held = async {
        child(100);
        let guard = scope!("futures: held guard");
        turn().await;
        child(100);
        drop(guard);
        child(500);
    };
    {
        let _root = scope!("futures: held root");
        let mut future = pin!(held.measure_execution_time("futures: held"));
        assert!(!poll(future.as_mut()) && poll(future.as_mut()));
    }
    let (root, future, guard) = (
        row("futures: held root"),
        row("futures: held"),
        row("futures: held guard"),
    );
    assert_eq!(
        (root.out_of_order, guard.out_of_order),
        (0, if_measuring(1))
    );
    assert!(
        future.out_of_order > 0 || !measuring(),
        "what its first poll lost is said"
    );
    let difference = root.cpu().total_ns - root.cpu().self_ns - future.polled_ns;
    assert!(difference.abs() < 1.0, "{difference} ns unaccounted for");
    assert!(!measuring() || future.cpu().self_ns < future.polled_ns - 600e3 + 100e3);
}

#[test]
fn guards_that_interleaved_futures_hold_are_not_each_others_recursion() {
    async fn request() {
        let _scope = scope!("futures: request");
        work(50);
        turn().await;
        work(50);
    }
    let mut futures: Vec<_> = (0..10)
        .map(|_| Box::pin(request().measure_execution_time("futures: serve")))
        .collect();
    for future in &mut futures {
        assert!(!poll(future.as_mut()));
    }
    for future in &mut futures {
        assert!(poll(future.as_mut()));
    }
    let row = row("futures: request");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(10), if_measuring(10))
    );
    assert!(
        !measuring() || row.cpu().total_ns >= 10.0 * 500e3,
        "each waits for the nine others"
    );
}

#[test]
fn a_future_ends_with_its_panic_even_if_it_is_dropped_later() {
    let mut future =
        Box::pin(async { panic!("as asked") }.measure_execution_time("futures: caught"));
    let start = std::time::Instant::now();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(future.as_mut())));
    let polled = start.elapsed().as_nanos() as f64;
    assert!(result.is_err());
    std::thread::sleep(Duration::from_millis(20));
    drop(future);
    let row = row("futures: caught");
    assert_eq!((row.panicked, row.dropped_futures), (if_measuring(1), 0));
    // Half of the sleep: two clocks are compared, and one is calibrated on a machine that may be busy.
    assert!(
        row.cpu().total_ns <= polled + 10e6,
        "it ended with the panic: {} of {polled}",
        row.cpu().total_ns
    );
}

#[test]
fn a_pending_future_is_open() {
    let mut future = pin!(turn().measure_execution_time("futures: waits"));
    assert!(!poll(future.as_mut()));
    assert_eq!(row("futures: waits").open, if_measuring(1));
    assert!(poll(future.as_mut()));
    assert_eq!(
        (row("futures: waits").open, row("futures: waits").calls),
        (0, if_measuring(1))
    );
}

#[test]
fn a_recursive_future_counts_once_in_the_total() {
    #[measure_execution_time(name = "futures: recursive")]
    fn recursive(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                0
            } else {
                recursive(depth - 1).await + 1
            }
        })
    }
    let mut future = pin!(async { assert_eq!(recursive(4).await, 4) });
    assert!(poll(future.as_mut()));
    let row = row("futures: recursive");
    assert_eq!(
        (row.calls, row.primitive_calls),
        (if_measuring(5), if_measuring(1))
    );
}

#[test]
fn tasks_move_between_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(run_tasks_on_many_threads());
}

async fn run_tasks_on_many_threads() {
    #[measure_execution_time(name = "futures: task")]
    async fn task() -> u64 {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            inner().await;
        }
        7
    }
    #[measure_execution_time(name = "futures: task inner")]
    async fn inner() {
        tokio::task::yield_now().await;
    }
    let tasks: Vec<_> = (0..50).map(|_| tokio::spawn(task())).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 7);
    }
    let (task, inner) = (row("futures: task"), row("futures: task inner"));
    assert_eq!(
        (task.calls, task.primitive_calls),
        (if_measuring(50), if_measuring(50))
    );
    assert_eq!((inner.calls, inner.open), (if_measuring(250), 0));
    assert!(task.polled_ns <= task.cpu().total_ns);
}
