//! Key averages of a window are those of the calls that ran in it, on the CPU as on the GPU, and agree with the running
//! statistics.

use std::sync::Arc;

use profiler_runtime::report::{KeyAverages, Row};
use profiler_runtime::{Activity, Profile, Trace, scope, summary};
use profiler_tests::{measuring, work};

fn fib(n: u32) {
    let _scope = scope!("exact: fib");
    work(20);
    if n > 0 {
        fib(n - 1);
    }
}

fn traced(run: impl FnOnce()) -> Arc<Trace> {
    let ((), trace) = Profile::builder().run(|_| run());
    trace.expect("a session")
}

#[track_caller]
fn row<'a>(averages: &'a KeyAverages, name: &str) -> &'a Row {
    let row = averages.rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("no row of {name}:\n{averages}"))
}

/// Two readings of the clock's rate lie some parts in ten thousand apart.
#[track_caller]
fn near(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(off <= 2e-3 * expected.abs() + 1.0, "{found} for {expected}");
}

#[test]
fn rows_are_those_of_the_statistics() {
    let trace = traced(|| {
        let _train = scope!("exact: train");
        fib(4);
        for _ in 0..5 {
            let _step = scope!("exact: step");
            work(50);
        }
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let _loader = scope!("exact: loader");
                work(100);
            });
        });
    });
    let averages = trace.key_averages();
    if !measuring() {
        assert!(averages.rows.is_empty());
        return;
    }
    let running = summary().key_averages();
    for (name, calls) in [
        ("exact: train", (1, 1)),
        ("exact: fib", (5, 1)),
        ("exact: step", (5, 5)),
        ("exact: loader", (1, 1)),
    ] {
        let (here, there) = (row(&averages, name), row(&running, name));
        assert_eq!((here.calls, here.primitive_calls), calls, "{name}");
        assert_eq!((there.calls, there.primitive_calls), calls, "{name}");
        let [here, there] = [here, there].map(|row| row.cpu.expect("a CPU time"));
        near(here.total_ns, there.total_ns);
        near(here.self_ns, there.self_ns);
        near(here.mean_ns, there.mean_ns);
        near(here.max_ns, there.max_ns);
    }
    let top_level = trace.events().filter(|event| event.parent().is_none());
    let own: f64 = averages
        .rows
        .iter()
        .filter_map(|row| Some(row.cpu.as_ref()?.self_ns))
        .sum();
    let top_level: f64 = top_level
        .map(profiler_runtime::session::Event::cpu_ns)
        .sum();
    // Each of the calls has three times that are rounded to nanoseconds: its start, its end, and what is inside of it.
    let rounding = 1.5 * trace.len() as f64;
    assert!((own - top_level).abs() <= rounding, "{own} for {top_level}");
    let shares = averages.rows.iter().filter_map(|row| row.cpu.as_ref());
    let shares: f64 = shares.map(|times| times.self_percent).sum();
    assert!((shares - 100.0).abs() < 1e-9, "{shares} %");
    let callers = averages.restrict("fib").expect("a pattern").callers();
    let from: Vec<_> = callers
        .edges
        .iter()
        .map(|edge| (edge.caller.as_deref(), edge.calls))
        .collect();
    assert_eq!(from, [(Some("exact: train"), 1), (Some("exact: fib"), 4)]);
}

#[test]
fn no_time_is_in_two_rows_where_a_scope_between_is_missing() {
    let between = |profile: &Profile| {
        let _outer = scope!("exact: outside");
        profile.toggle_collection(false, [Activity::Cpu]);
        let _middle = scope!("exact: not recorded");
        profile.toggle_collection(true, [Activity::Cpu]);
        let _inner = scope!("exact: inside");
        work(500);
    };
    let builder = Profile::builder().activities([Activity::Cpu]);
    let ((), trace) = builder.run(between);
    let trace = trace.expect("a session");
    if !measuring() {
        return;
    }
    let averages = trace.key_averages();
    let [outer, inner] = ["exact: outside", "exact: inside"]
        .map(|name| row(&averages, name).cpu.expect("a CPU time"));
    assert_eq!(averages.rows.len(), 2, "{averages}");
    near(outer.self_ns + inner.self_ns, outer.total_ns);
    near(inner.self_ns, inner.total_ns);
}
