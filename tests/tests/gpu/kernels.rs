//! Windows have the kernels, copies and fills inside of each scope, by name, as CUPTI records them.

use std::collections::BTreeMap;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::report::SliceKind;
use profiler_runtime::session::ProfileBuilder;
use profiler_runtime::{Activity, MeasureFuture, Profile, Trace, init, scope};
use profiler_simulated_driver::ActivityKind;
use profiler_tests::gpu::{Gpu, driver, on_threads, simulator, started};
use profiler_tests::poll;
use profiler_tests::stop;

/// A kernel, a copy or a fill.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Work {
    name: String,
    /// The name of the scope that launched it.
    scope: Option<String>,
    ns: i64,
    correlation: u32,
}

/// Returns the work of a window in the order of its starts.
fn work_of(trace: &Trace) -> Vec<Work> {
    let line = trace.timeline();
    let name = |index: u32| line.names[index as usize].text.to_string();
    let slices = line.slices.iter();
    let mut slices: Vec<_> = slices
        .filter(|slice| slice.kind == SliceKind::GpuWork)
        .collect();
    slices.sort_by_key(|slice| slice.start_ns);
    let work = slices.into_iter().map(|slice| Work {
        name: name(slice.name),
        scope: slice
            .parent
            .map(|parent| name(line.slices[parent as usize].name)),
        ns: slice.duration_ns,
        correlation: slice
            .work
            .map_or(0, |work| line.work[work as usize].correlation),
    });
    work.collect()
}

/// Asserts that the window has all work that the device did for launches that CUPTI saw, with its times.
#[track_caller]
fn is_complete(trace: &Trace) {
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let mut expected: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    let is_work =
        |kind| [ActivityKind::Kernel, ActivityKind::Copy, ActivityKind::Fill].contains(&kind);
    for activity in simulator().report().expect("a report").activities {
        if let (true, Some(correlation)) = (is_work(activity.kind), activity.correlation) {
            let ns = i64::try_from(activity.end - activity.start).expect("short");
            expected.entry(correlation).or_default().push(ns);
        }
    }
    let mut found: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
    for work in work_of(trace) {
        found.entry(work.correlation).or_default().push(work.ns);
    }
    for times in expected.values_mut().chain(found.values_mut()) {
        times.sort_unstable();
    }
    assert_eq!(found, expected);
}

/// Returns the scopes and lengths of the kernels of a window.
fn kernels_of(trace: &Trace) -> Vec<(Option<String>, i64)> {
    let work = work_of(trace).into_iter();
    let kernels = work.filter(|work| !work.name.starts_with("Mem"));
    kernels.map(|work| (work.scope, work.ns)).collect()
}

fn in_scope(name: &str, ns: i64) -> (Option<String>, i64) {
    (Some(name.to_owned()), ns)
}

/// Starts a session. The clock of the device stands still until it is waited for: what is launched from now on runs after
/// the window has opened.
fn begun(builder: ProfileBuilder) -> Profile {
    let profile = builder.start().expect("started");
    simulator()
        .advance(1_000_000_000)
        .expect("the clock is virtual");
    profile
}

/// Ends a session and returns its window.
fn window(profile: &Profile) -> std::sync::Arc<Trace> {
    stop(profile);
    profile.trace().expect("a trace")
}

#[test(on = driver().kernels())]
fn each_kernel_stands_under_the_innermost_scope_that_launched_it() {
    let (_profiler, gpu, stream) = started();
    let profile = begun(Profile::builder());
    gpu.spin(&stream, 1_000);
    {
        let _outer = scope!("outer", stream = &stream);
        gpu.spin(&stream, 2_000);
        {
            let _inner = scope!("inner", stream = &stream);
            gpu.spin(&stream, 3_000);
            gpu.spin(&stream, 4_000);
        }
        gpu.spin(&stream, 5_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    let trace = window(&profile);
    is_complete(&trace);
    assert_eq!(
        kernels_of(&trace),
        [
            (None, 1_000),
            in_scope("outer", 2_000),
            in_scope("inner", 3_000),
            in_scope("inner", 4_000),
            in_scope("outer", 5_000),
        ]
    );
    assert!(work_of(&trace).iter().all(|work| work.name == "spin_ns"));
    assert_eq!(
        trace.kernel_notes().collect::<Vec<_>>(),
        <[&str; 0]>::default()
    );
    assert!(matches!(
        kernel_status(),
        KernelStatus::Ready { version: 26, .. }
    ));
}

#[test(on = driver().kernels())]
fn kernels_of_threads_and_streams_stand_under_the_scopes_of_their_threads() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let profile = begun(Profile::builder());
    on_threads(1..=4_u64, |thread| {
        gpu.context.bind_to_thread().expect("a context");
        let stream = gpu.stream();
        for round in 1..=20 {
            let _scope = scope!(format!("thread {thread}"), stream = &stream);
            gpu.spin(&stream, 1_000 * thread + round);
        }
        stream.synchronize().expect("nothing failed");
    });
    let trace = window(&profile);
    is_complete(&trace);
    let kernels = kernels_of(&trace);
    assert_eq!(kernels.len(), 80);
    for (scope, ns) in kernels {
        assert_eq!(scope, Some(format!("thread {}", ns / 1_000)));
    }
}

#[test(on = driver().kernels())]
fn a_kernel_that_a_poll_launches_stands_under_the_future() {
    let (_profiler, gpu, stream) = started();
    let profile = begun(Profile::builder());
    let task = async {
        gpu.spin(&stream, 1_000);
        let _inside = scope!("inside", stream = &stream);
        gpu.spin(&stream, 2_000);
    };
    poll::run(task.measure_execution_time("task"));
    gpu.context.synchronize().expect("nothing failed");
    let trace = window(&profile);
    is_complete(&trace);
    assert_eq!(
        kernels_of(&trace),
        [in_scope("task", 1_000), in_scope("inside", 2_000)]
    );
}

#[test(on = driver().kernels())]
fn windows_have_the_work_that_was_launched_in_them() {
    let (_profiler, gpu, stream) = started();
    for round in 1..=3 {
        // Outside of windows nothing is recorded.
        gpu.spin(&stream, 100);
        let profile = begun(Profile::builder());
        let scope = scope!("window", stream = &stream);
        gpu.spin(&stream, 1_000 * round);
        drop(scope);
        gpu.context.synchronize().expect("nothing failed");
        let trace = window(&profile);
        let length = i64::try_from(1_000 * round).expect("short");
        assert_eq!(kernels_of(&trace), [in_scope("window", length)]);
    }
}

#[test(on = driver().kernels())]
fn a_session_without_gpu_times_or_kernels_does_not_use_cupti() {
    let (_profiler, gpu, stream) = started();
    let profile = begun(Profile::builder().activities([Activity::Cpu]));
    gpu.spin(&stream, 1_000);
    gpu.context.synchronize().expect("nothing failed");
    let trace = window(&profile);
    assert!(!trace.has_kernels() && trace.no_kernels_reason().is_none());
    assert_eq!(kernels_of(&trace), []);
    assert_eq!(
        simulator()
            .report()
            .expect("a report")
            .calls_of("cuptiSubscribe"),
        0
    );
}
