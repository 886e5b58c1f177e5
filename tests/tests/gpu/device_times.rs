//! Times of devices that something else has measured, and that a handle takes.

use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::report::SliceKind;
use profiler_runtime::{Handle, Profile, Trace, init, scope, summary};
use profiler_tests::gpu::{driver, started};
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
        (2_600.0, 2_600.0, 2)
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
