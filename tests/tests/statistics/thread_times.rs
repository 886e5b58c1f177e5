//! Thread times beside elapsed times: how long a call's thread ran on a processor.

#![cfg(unix)]

use std::process::Command;
use std::time::{Duration, Instant};

use profiler_runtime::report::{Row, SortKey};
use profiler_runtime::{MeasureFuture, builder, measure, measured, set_enabled, summary};
use profiler_tests::measuring;

fn row(name: &str) -> Row {
    summary().row(name).cloned().expect(name)
}

/// Returns how long this thread has run on a processor.
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the `timespec` only.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    let seconds = u64::try_from(time.tv_sec).expect("after zero");
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).expect("below a second"))
}

/// Keeps the processor busy until this thread has run for `duration` more.
fn work(duration: Duration) {
    let start = thread_time();
    while thread_time().saturating_sub(start) < duration {
        std::hint::spin_loop();
    }
}

const WORK: Duration = Duration::from_millis(5);
const WORK_NS: f64 = 5e6;
const REST: Duration = Duration::from_millis(50);

#[measured(name = "outer")]
fn outer() {
    work(WORK);
    inner();
    std::thread::sleep(REST);
}

#[measured(name = "inner")]
fn inner() {
    work(WORK);
    std::thread::sleep(REST);
}

#[test]
fn waits_are_in_elapsed_times_only() {
    let _profiler = builder().thread_time(true).init().expect("set up");
    if !measuring() {
        return;
    }
    let start = (Instant::now(), thread_time());
    for _ in 0..3 {
        outer();
    }
    let (elapsed, worked) = (start.0.elapsed(), thread_time().saturating_sub(start.1));
    let (outer, inner) = (row("outer"), row("inner"));
    let total = |row: &Row| row.thread_time_total_ns.expect("measured");
    let own = |row: &Row| row.self_thread_time_total_ns.expect("measured");

    assert!(total(&outer) >= 6.0 * WORK_NS && total(&inner) >= 3.0 * WORK_NS);
    assert!(total(&outer) <= worked.as_nanos() as f64);
    assert!((own(&outer) - (total(&outer) - total(&inner))).abs() < 1.0);
    assert!((total(&inner) - own(&inner)).abs() < 1.0);
    // The rest of the elapsed time was spent asleep, or waiting for a processor.
    let total_elapsed = outer.cpu.expect("calls").total_ns;
    assert!(total_elapsed - total(&outer) >= 6.0 * REST.as_nanos() as f64);
    assert!(total_elapsed <= elapsed.as_nanos() as f64);

    let sorted = summary().sort_by(SortKey::SelfThreadTimeTotal);
    let names: Vec<&str> = sorted.rows.iter().map(|row| &*row.name).collect();
    let longest = if own(&outer) >= own(&inner) {
        "outer"
    } else {
        "inner"
    };
    assert_eq!(names[0], longest);
}

#[measured(name = "recursive")]
fn recursive(depth: u32) {
    work(WORK);
    if depth > 1 {
        recursive(depth - 1);
    }
}

#[test]
fn a_recursive_call_counts_its_thread_time_once() {
    let _profiler = builder().thread_time(true).init().expect("set up");
    if !measuring() {
        return;
    }
    recursive(4);
    let row = row("recursive");
    let total = row.thread_time_total_ns.expect("measured");
    let own = row.self_thread_time_total_ns.expect("measured");
    assert!(total >= 4.0 * WORK_NS && total <= row.cpu.expect("calls").total_ns);
    assert!((total - own).abs() < 1.0, "{total} {own}");
}

#[test]
fn a_future_has_the_thread_time_of_its_polls() {
    let _profiler = builder().thread_time(true).init().expect("set up");
    if !measuring() {
        return;
    }
    let future = async {
        work(WORK);
        tokio::time::sleep(REST).await;
        measure!("part", { work(WORK) });
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(future.measure_execution_time("future"));
    let (future, part) = (row("future"), row("part"));
    let total = future.thread_time_total_ns.expect("measured");
    let own = future.self_thread_time_total_ns.expect("measured");
    let of_part = part.thread_time_total_ns.expect("measured");
    assert!(total >= 2.0 * WORK_NS && of_part >= WORK_NS);
    assert!((total - own - of_part).abs() < 1.0);
    assert!(total <= future.polled_ns, "{total} {}", future.polled_ns);
}

#[test]
fn thread_times_are_measured_only_on_request() {
    const CHILD: &str = "THREAD_TIMES_CHILD";
    if std::env::var_os(CHILD).is_some() {
        set_enabled(true);
        measure!("call", { work(WORK) });
        let time = summary()
            .row("call")
            .and_then(|row| row.thread_time_total_ns);
        println!("has a thread time: {}", time.is_some());
        return;
    }
    if !measuring() {
        return;
    }
    let ask = |value: Option<&str>| {
        let test = profiler_tests::isolated::again();
        let mut command = Command::new(test.get_program());
        command.args(test.get_args()).env(CHILD, "1");
        command.envs(value.map(|value| ("PROFILER_THREAD_TIME", value)));
        let output = command.output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).contains("has a thread time: true")
    };
    assert!(!ask(None) && !ask(Some("0")) && ask(Some("1")));
}
