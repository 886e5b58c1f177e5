//! Times of devices that something else has measured, and that a handle takes.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::report::{CallTreeOptions, SliceKind};
use profiler_runtime::{
    Handle, MeasureFuture, Profile, Trace, builder, flush, init, scope, summary,
};
use profiler_tests::gpu::{driver, started};
use profiler_tests::poll::{run, yields};
use profiler_tests::stop;
use profiler_tests::traces::read_back;

use crate::support::kernels::Program;

/// Reports times of these nanoseconds that have just ended.
fn report(handle: &Handle, times: &[(&str, u64)]) {
    for (name, ns) in times {
        let end = Instant::now();
        let start = end
            .checked_sub(Duration::from_nanos(*ns))
            .expect("the machine ran before");
        handle.report_device_time(name, start, end);
    }
}

/// Returns calls, calls with a GPU time, total and self time on the GPU.
fn row(name: &str) -> (u64, Option<(u64, f64, f64)>) {
    let summary = summary();
    let row = summary.row(name).expect("it was called");
    let cuda = row
        .cuda
        .map(|cuda| (cuda.calls, cuda.total_ns, cuda.self_ns));
    (row.calls, cuda)
}

#[test(measuring)]
fn times_are_those_of_the_scope_and_no_calls() {
    let _profiler = init().expect("set up");
    let handle = {
        let _outer = scope!("outer");
        let _scope = scope!("asks");
        let handle = Handle::current();
        thread::scope(|threads| {
            let handle = &handle;
            threads.spawn(move || report(handle, &[("one", 2_000), ("two", 500)]));
        });
        handle
    };
    assert_eq!(row("asks"), (1, Some((0, 2_500.0, 2_500.0))));
    report(&handle, &[("one", 1_500)]);
    report(&Handle::none(), &[("one", 1_500)]);
    let now = Instant::now();
    handle.report_device_time("backwards", now + Duration::from_micros(1), now);
    assert_eq!(row("asks"), (1, Some((0, 4_000.0, 4_000.0))));
    assert_eq!(row("outer"), (1, None));
    let table = summary().to_string();
    let line = table.lines().find(|line| line.starts_with("asks"));
    let line = line.expect("a row");
    assert!(line.contains("4.00 µs") && !line.contains("NaN"), "{table}");
}

#[test(measuring)]
fn a_recursive_call_has_its_times_under_its_own_name() {
    let _profiler = init().expect("set up");
    {
        let _outer = scope!("again");
        let _middle = scope!("between");
        let _inner = scope!("again");
        report(&Handle::current(), &[("kernel", 3_000)]);
    }
    assert_eq!(row("again"), (2, Some((0, 3_000.0, 3_000.0))));
    assert_eq!(row("between"), (1, None));
}

#[test(on = driver())]
fn times_are_added_to_those_of_the_scopes_streams() {
    let (_profiler, gpu, stream) = started();
    let handle = {
        let _scope = scope!("both", stream = &stream);
        gpu.spin(&stream, 10_000);
        Handle::current()
    };
    gpu.finish();
    let (calls, measured) = row("both");
    let (timed, total, own) = measured.expect("a GPU time");
    report(&handle, &[("elsewhere", 7_000)]);
    assert_eq!(
        row("both"),
        (calls, Some((timed, total + 7_000.0, own + 7_000.0)))
    );
}

/// A program whose functions are told times in different calls, and the trace of it. Of the calls of `inner`, one has none.
fn told() -> Arc<Trace> {
    let ((), trace) = Profile::builder().run(|_| {
        let _outer = scope!("outer");
        for call in 0..3 {
            let _inner = scope!("inner");
            if call > 0 {
                report(&Handle::current(), &[("one", 5_000), ("two", 3_000)]);
            }
        }
        let _again = scope!("outer");
        report(&Handle::current(), &[("three", 1_000)]);
    });
    trace.expect("a trace")
}

/// The names, and what each is told.
const TOLD: [(&str, f64); 2] = [("inner", 16_000.0), ("outer", 1_000.0)];

#[test(measuring)]
fn each_report_has_the_times_and_none_has_calls_of_them() {
    let profiler = builder().callers(true).init();
    let _profiler = profiler.expect("set up");
    let trace = told();
    let summary = summary();
    let averages = trace.key_averages();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let read = read_back(&path).key_averages();
    let text = summary.to_prometheus();
    for (name, ns) in TOLD {
        let rows = [summary.row(name), averages.row(name), read.row(name)];
        for row in rows {
            let row = row.expect("it was called");
            let cuda = row.cuda.expect("a GPU time");
            assert_eq!((cuda.calls, cuda.total_ns, cuda.self_ns), (0, ns, ns));
            assert!(row.cuda_histogram.is_none() && row.launch_bound.is_none());
        }
        let trees = [
            summary.call_tree(),
            trace.timeline().call_tree(CallTreeOptions::new()),
        ];
        for tree in trees {
            let functions = tree.functions();
            let function = functions.iter().find(|function| &*function.name == name);
            let cuda = function.and_then(|function| function.cuda);
            let cuda = cuda.expect("a GPU time");
            assert_eq!((cuda.total_ns, cuda.self_ns), (ns, ns), "{name}");
        }
        for callers in [summary.callers(), averages.callers()] {
            let edges = callers.edges.iter().filter(|edge| edge.callee == name);
            let own: f64 = edges.filter_map(|edge| Some(edge.cuda?.self_ns)).sum();
            assert!((own - ns).abs() < 1e-6, "{name}: {own}");
        }
        let series = format!("profiler_self_seconds_total{{name=\"{name}\",clock=\"cuda\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series));
        let seconds: f64 = line.expect("a series").parse().expect("a number");
        assert!((seconds * 1e9 - ns).abs() < 1e-3, "{line:?}");
    }
    let histogram = "profiler_call_seconds_count{name=\"inner\",clock=\"cuda\"}";
    assert!(!text.contains(histogram), "{text}");
}

#[test(measuring)]
fn files_for_viewers_have_the_times() {
    let profiler = builder().callers(true).init();
    let _profiler = profiler.expect("set up");
    let trace = told();
    let summary = summary();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    summary.dump_stats(file("summary.prof")).expect("room");
    trace.dump_stats(file("trace.prof")).expect("room");
    summary.export_pprof(file("summary.pb")).expect("room");
    for name in ["summary", "trace"] {
        assert!(file(&format!("{name}.cuda.prof")).exists(), "{name}");
    }
    let profile = fs::read(file("summary.pb")).expect("a file");
    let has_cuda = profile.windows(4).any(|part| part == b"cuda");
    assert!(has_cuda, "a sample type");
    let metric = "self_cuda_time_total";
    summary
        .export_stacks(file("summary.folded"), metric)
        .expect("some have it");
    trace
        .export_stacks(file("trace.folded"), metric)
        .expect("some have it");
    for name in ["summary.folded", "trace.folded"] {
        let text = fs::read_to_string(file(name)).expect("a file");
        let weight = |line: &str| line.rsplit_once(' ')?.1.parse::<f64>().ok();
        let sum: f64 = text.lines().filter_map(weight).sum();
        assert!((sum - 17_000.0).abs() < 1.0, "{text}");
    }
}

fn total(trace: &Trace, name: &str) -> Option<(f64, f64)> {
    let averages = trace.key_averages();
    let row = averages.row(name)?;
    row.cuda.map(|cuda| (cuda.total_ns, cuda.self_ns))
}

#[test(measuring)]
fn a_window_has_the_times_of_its_scopes_however_late_they_come() {
    let _profiler = init().expect("set up");
    let before = {
        let _scope = scope!("asks");
        Handle::current()
    };
    let profile = Profile::builder().start().expect("started");
    let handles = [(); 2].map(|()| {
        let _scope = scope!("asks");
        Handle::current()
    });
    // Of a scope that is not in the window.
    report(&before, &[("kernel", 900)]);
    for handle in &handles {
        report(handle, &[("kernel", 1_000), ("other", 300)]);
    }
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    let line = trace.timeline();
    let of_gpu = line
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::GpuScope);
    let mut found: Vec<(&str, i64, &str)> = of_gpu
        .map(|slice| {
            let name =
                |slice: &profiler_runtime::report::Slice| &*line.names[slice.name as usize].text;
            let parent = &line.slices[slice.parent.expect("a scope") as usize];
            (name(slice), slice.duration_ns, name(parent))
        })
        .collect();
    found.sort_unstable();
    let (kernel, other) = (("kernel", 1_000, "asks"), ("other", 300, "asks"));
    assert_eq!(found, [kernel, kernel, other, other]);
    assert_eq!(total(&trace, "asks"), Some((2_600.0, 2_600.0)));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let read = read_back(&path).key_averages();
    let cuda = read.row("asks").expect("a row").cuda.expect("a GPU time");
    assert_eq!(
        (cuda.total_ns, cuda.self_ns, cuda.calls),
        (2_600.0, 2_600.0, 0)
    );
    // Too late for the window, but not for the summary.
    report(&handles[0], &[("kernel", 5_000)]);
    assert_eq!(row("asks").1.map(|cuda| cuda.1), Some(8_500.0));
}

#[test(on = driver().kernels())]
fn a_window_that_has_the_kernels_leaves_reported_times_out() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _scope = scope!("asks");
        program.gpu.spin(&stream, 4_000);
        report(&Handle::current(), &[("kernel", 4_000)]);
    });
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert_eq!(total(&trace, "asks"), Some((4_000.0, 4_000.0)));
}

#[test(measuring)]
fn times_of_a_scope_that_ends_out_of_order_are_kept() {
    let _profiler = init().expect("set up");
    let ((), trace) = Profile::builder().run(|_| {
        let first = scope!("first");
        let second = scope!("second");
        let handle = Handle::current();
        drop(first);
        report(&handle, &[("kernel", 8_000)]);
        drop(second);
        report(&handle, &[("kernel", 8_000)]);
    });
    assert_eq!(row("second"), (1, Some((0, 16_000.0, 16_000.0))));
    let trace = trace.expect("a trace");
    assert_eq!(total(&trace, "second"), Some((16_000.0, 16_000.0)));
}

#[test(measuring)]
fn times_of_a_recursive_call_that_ends_out_of_order_are_kept() {
    let _profiler = init().expect("set up");
    let _outer = scope!("again");
    let first = scope!("first");
    let second = scope!("again");
    let handle = Handle::current();
    drop(first);
    report(&handle, &[("kernel", 8_000)]);
    drop(second);
    assert_eq!(row("again").1, Some((0, 8_000.0, 8_000.0)));
}

#[test(measuring)]
fn times_of_a_scope_that_is_held_from_one_poll_to_the_next_are_kept() {
    let _profiler = init().expect("set up");
    let future = async {
        let held = scope!("held");
        let handle = Handle::current();
        yields(1).await;
        report(&handle, &[("kernel", 4_000)]);
        drop(held);
        report(&handle, &[("kernel", 1_000)]);
    };
    let ((), trace) = Profile::builder().run(|_| run(future.measure_execution_time("future")));
    assert_eq!(row("held"), (1, Some((0, 5_000.0, 5_000.0))));
    let trace = trace.expect("a trace");
    assert_eq!(total(&trace, "held"), Some((5_000.0, 5_000.0)));
}

/// A guard that a coroutine moves to another thread.
struct Moved<Guard>(Guard);

// SAFETY: the profiler tolerates it, as it must: stackful coroutines do it without asking.
unsafe impl<Guard> Send for Moved<Guard> {}

#[test(measuring)]
fn times_of_a_scope_that_ends_on_another_thread_or_never_are_kept() {
    let _profiler = init().expect("set up");
    let handle = {
        let moved = Moved(scope!("moved"));
        let handle = Handle::current();
        thread::scope(|threads| {
            threads.spawn(move || {
                let moved = moved;
                drop(moved.0);
            });
        });
        handle
    };
    report(&handle, &[("kernel", 3_000)]);
    assert_eq!(row("moved").1, Some((0, 3_000.0, 3_000.0)));
    let leaked = scope!("leaked");
    report(&Handle::current(), &[("kernel", 2_000)]);
    std::mem::forget(leaked);
    assert_eq!(row("leaked").1, Some((0, 2_000.0, 2_000.0)));
}

#[test(measuring)]
fn a_logger_may_report_times() {
    let _profiler = init().expect("set up");
    let asker = {
        let _scope = scope!("asks");
        Handle::current()
    };
    let reporter = asker.clone();
    {
        let log = move |_: &str, _: f64, _: u64| report(&reporter, &[("kernel", 10_000)]);
        let _scope = scope!("logged", log = log);
    }
    let _ = flush(Duration::from_secs(60));
    assert_eq!(row("asks"), (1, Some((0, 10_000.0, 10_000.0))));
    assert_eq!(summary().refused, 0);
}

#[test(measuring)]
fn scopes_that_never_end_leave_room_for_the_handles_of_others() {
    let _profiler = init().expect("set up");
    for _ in 0..2_000 {
        let _outer = scope!("outer");
        let leaked = scope!("leaked");
        report(&Handle::current(), &[("kernel", 10)]);
        std::mem::forget(leaked);
    }
    {
        let _scope = scope!("asks");
        report(&Handle::current(), &[("kernel", 7)]);
    }
    assert_eq!(row("leaked").1, Some((0, 20_000.0, 20_000.0)));
    assert_eq!(row("asks").1, Some((0, 7.0, 7.0)));
}
