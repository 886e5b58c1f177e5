//! Another profiler in the process may have given CUPTI a clock of its own, as PyTorch's does: kernels have the right times, or
//! none.

use std::sync::Arc;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::session::Event;
use profiler_runtime::{Profile, Trace, init, scope};
use profiler_tests::gpu::{OnDriver, cupti_of_driver, driver, tell};
use profiler_tests::stop;

use crate::support::kernels::{Found, Program, Work, assert_times, found, truth};

const KERNELS: usize = 10;
/// The times of a clock that was converted may be off by so much on a busy machine.
const TOLERANCE_NS: i64 = 300_000;

/// As for other faults of CUPTI, time passes for the device as for the host.
fn with_cupti() -> OnDriver {
    driver().script("clock real").set_up(cupti_of_driver)
}

/// Records kernels of two milliseconds under one scope with a GPU time, which exists whatever CUPTI does.
fn record(program: &Program, meanwhile: impl FnOnce()) -> Arc<Trace> {
    let stream = program.gpu.stream();
    let launch = |kernels| (0..kernels).for_each(|_| program.gpu.spin(&stream, 2_000_000));
    let trace = program.record(|_| {
        let _scope = scope!("work", stream = &stream);
        launch(KERNELS / 2);
        stream.synchronize().expect("nothing failed");
        meanwhile();
        launch(KERNELS - KERNELS / 2);
    });
    let event = trace.events().find(|event| event.name() == "work");
    let spent = event.and_then(Event::gpu).expect("a GPU time").ns;
    assert!(spent >= 2e6 * KERNELS as f64 - 1.0, "{spent} ns");
    trace
}

/// Asserts that kernels stand where the device ran them, on the time line of the scopes.
#[track_caller]
fn assert_about_right(trace: &Trace, found: &[Found]) {
    let line = trace.timeline();
    let ends = (
        line.start_unix_ns - TOLERANCE_NS,
        line.start_unix_ns + line.duration_ns + TOLERANCE_NS,
    );
    let mut truth = truth();
    truth.retain(|real| {
        found
            .iter()
            .any(|found| Some(found.correlation) == real.correlation)
    });
    assert_eq!(truth.len(), found.len());
    let mut differences = Vec::new();
    for found in found {
        let of_kernel = truth
            .iter()
            .find(|real| real.correlation == Some(found.correlation));
        let start = i64::try_from(of_kernel.expect("it ran").start).expect("it fits");
        differences.push(found.span.0 - start);
        let Work::Kernel(ns) = found.work else {
            panic!("{found:?}");
        };
        assert!(ns.abs_diff(2_000_000) < 20_000, "{ns} ns");
        assert!(
            ends.0 <= found.span.0 && found.span.1 <= ends.1,
            "{found:?} {ends:?}"
        );
    }
    let (least, most) = (differences.iter().min(), differences.iter().max());
    let spread = most.zip(least).map_or(0, |(most, least)| most - least);
    assert!(spread < TOLERANCE_NS, "{spread} ns");
}

#[test(on = with_cupti().warnings(0).scripts([
    "cupti clock ticks-per-us 2400",
    "cupti clock ticks-per-us 1000",
    "cupti clock ticks-per-us 54",
]))]
fn times_by_the_clock_of_another_profiler_are_converted() {
    let _profiler = init().expect("set up");
    let trace = record(&Program::new(), || ());
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let found = found(&trace);
    assert_eq!(found.len(), KERNELS);
    assert_about_right(&trace, &found);
    assert!(
        trace
            .kernel_notes()
            .any(|note| note.contains("another clock than the profiler's")),
        "{:?}",
        trace.kernel_notes().collect::<Vec<_>>()
    );
}

#[test(on = with_cupti().warnings(0).scripts([
    "cupti clock ignored",
    "cupti clock ignored; cupti clock-offset 3us",
    "cupti clock ignored; cupti clock-offset 1ms",
]))]
fn a_clock_of_nanoseconds_that_cupti_keeps_changes_no_length_and_no_distance() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        for _ in 0..KERNELS {
            program.kernel(&stream, None);
            stream.synchronize().expect("nothing failed");
            // So long that the least error of a rate shows.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    let found = found(&trace);
    assert_eq!(found.len(), KERNELS);
    assert_times(&found);
}

#[test(on = with_cupti().scripts(["cupti clock ticks-per-us 0", "cupti clock ticks-per-us 1000000"]))]
fn a_clock_that_means_nothing_leaves_kernels_out() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = record(&program, || ());
    assert!(!trace.has_kernels());
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains("the clock of CUPTI"), "{reason}");
    assert!(matches!(
        kernel_status(),
        KernelStatus::UnusableClock { .. }
    ));
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    // The next session looks again.
    tell("cupti clear-faults");
    let stream = program.gpu.stream();
    let later = program.record(|program| program.kernel(&stream, None));
    assert!(later.has_kernels(), "{:?}", later.no_kernels_reason());
}

#[test(on = with_cupti().warnings(1).says_once("kernels are left out"))]
fn a_clock_that_is_replaced_during_a_window_gives_no_wrong_times() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = record(&program, || {
        // Until the first kernels have been read.
        std::thread::sleep(std::time::Duration::from_millis(150));
        tell("cupti clock ticks-per-us 2400");
        while !matches!(kernel_status(), KernelStatus::UnusableClock { .. }) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(!trace.has_kernels(), "not for all of the window");
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains("the clock of CUPTI"), "{reason}");
    assert_about_right(&trace, &found(&trace));
    // Another session relates the new clock.
    let profile = Profile::builder().kernels(true).start().expect("started");
    let stream = program.gpu.stream();
    (0..KERNELS).for_each(|_| program.gpu.spin(&stream, 2_000_000));
    program.gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    let later = profile.trace().expect("a trace");
    assert!(later.has_kernels(), "{:?}", later.no_kernels_reason());
    let found = found(&later);
    assert_eq!(found.len(), KERNELS);
    assert_about_right(&later, &found);
}
