//! A CUPTI that refuses, loses, or misorders: missing records are counted by their reason, and GPU times are still taken.

use std::sync::Arc;
use std::time::Duration;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::session::LostWork;
use profiler_runtime::{Profile, Trace, init, scope};
use profiler_simulated_driver::CuptiReport;
use profiler_tests::gpu::{OnDriver, cupti_of_driver, driver, simulator, tell, told};
use profiler_tests::stop;

use crate::support::kernels::{Found, Program, assert_scopes, assert_times, found, truth};
const KERNELS: usize = 30;

/// A driver with a simulated CUPTI, whose records are on one time line with the scopes only if time passes for the device
/// as for the host.
fn with_cupti() -> OnDriver {
    driver().script("clock real").set_up(cupti_of_driver)
}

fn cupti() -> CuptiReport {
    simulator().report().expect("a report").cupti
}

/// Records 30 kernels under one scope with a GPU time, which exists whatever CUPTI does.
fn record(program: &Program) -> Arc<Trace> {
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _scope = scope!("work", stream = &stream);
        (0..KERNELS).for_each(|_| program.kernel(&stream, Some("work")));
    });
    let event = trace
        .events()
        .find(|event| event.name() == "work")
        .expect("the scope");
    let expected: u64 = (0..KERNELS as u64).map(|kernel| 1_000 + kernel).sum();
    let spent = event.gpu().expect("a GPU time").ns;
    assert!(spent >= expected as f64 - 1.0, "{spent} ns");
    trace
}

/// What is said of a CUPTI that has run a script.
const REFUSALS: [(&str, &str); 8] = [
    ("another tool uses CUPTI", "cupti holder nsys"),
    // As 13.5 where there is no driver.
    (
        "refused cuptiGetVersion",
        "fault cuptiGetVersion always return 999",
    ),
    ("cuptiSubscribe", "fault cuptiSubscribe always return 2"),
    (
        "CUPTI_ERROR_NOT_INITIALIZED",
        "fault cuptiSubscribe always return 15",
    ),
    ("4711", "fault cuptiSubscribe always return 4711"),
    (
        "CUPTI_ERROR_UNKNOWN",
        "fault cuptiActivityRegisterCallbacks always return 999",
    ),
    (
        "INSUFFICIENT_PRIVILEGES",
        "fault cuptiActivityEnable always return 35",
    ),
    (
        "cuptiEnableCallback",
        "fault cuptiEnableCallback always return 1",
    ),
];

#[test(on = with_cupti().table(REFUSALS, |driver, script| driver.script(script)))]
fn a_cupti_that_refuses_is_said_and_gpu_times_go_on() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = record(&program);
    assert!(!trace.has_kernels());
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains(&told()), "{reason}");
    assert!(
        trace.lost_work().is_complete(),
        "nothing was recorded, so nothing is lost"
    );
    let cupti = cupti();
    assert!(
        !cupti.subscribed && cupti.kinds_enabled.is_empty(),
        "{cupti:?}"
    );
}

fn without_each(functions: [&'static str; 3]) -> OnDriver {
    driver()
        .set_up(cupti_of_driver)
        .each(functions, |driver, function| {
            let function = *function;
            driver.installed(move |of| of.without(function))
        })
}

#[test(on = without_each(["cuptiSubscribe", "cuptiActivityFlushAll", "cuptiActivityGetNextRecord"]))]
fn a_library_that_lacks_a_function_is_too_old() {
    let _profiler = init().expect("set up");
    let trace = record(&Program::new());
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains(&told()), "{reason}");
    assert!(matches!(kernel_status(), KernelStatus::TooOld { .. }));
}

/// Records kernels, and returns what was found and what is lost.
fn recorded() -> (Vec<Found>, LostWork, CuptiReport) {
    let _profiler = init().expect("set up");
    let (found, trace, cupti) = recorded_trace();
    (found, trace.lost_work(), cupti)
}

fn recorded_trace() -> (Vec<Found>, Arc<Trace>, CuptiReport) {
    let trace = record(&Program::new());
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    let found = found(&trace);
    assert!(
        found
            .iter()
            .all(|found| found.scope.as_deref().is_none_or(|scope| scope == "work"))
    );
    (found, trace, cupti())
}

#[test(on = with_cupti().scripts(["cupti record every 4 drop"]))]
fn records_that_cupti_drops_are_counted() {
    let (found, lost, cupti) = recorded();
    assert!(cupti.records_dropped >= KERNELS as u64 / 4);
    assert_eq!(lost.dropped, cupti.records_dropped);
    assert!(found.len() < KERNELS && found.len() as u64 + cupti.records_dropped >= KERNELS as u64);
}

#[test(on = with_cupti().scripts(["cupti record every 4 lose", "cupti keep-buffers 1"]))]
fn records_that_vanish_are_counted_as_incomplete() {
    let (found, lost, _) = recorded();
    assert!(found.len() < KERNELS);
    assert_eq!(
        (found.len() as u64 + lost.incomplete, lost.dropped),
        (KERNELS as u64, 0)
    );
}

#[test(on = with_cupti().scripts(["cupti record every 4 untimed"]))]
fn records_without_times_are_counted_and_drawn_nowhere() {
    let _profiler = init().expect("set up");
    let (found, trace, cupti) = recorded_trace();
    let lost = trace.lost_work();
    assert_eq!(lost.without_time, cupti.records_untimed);
    assert!(lost.without_time > 0 && found.len() < KERNELS);
    let known = trace.gpu_work().filter(|work| work.scope().is_some());
    assert_eq!(known.count(), KERNELS, "their scopes are known");
}

#[test(on = with_cupti()
    .scripts(["cupti record nth 11 after-unknown", "cupti release 12.0; cupti record nth 11 after-unknown"])
    .says_once("CUPTI cannot read one of its own records"))]
fn a_record_that_cupti_cannot_read_is_counted_and_said() {
    let (found, lost, cupti) = recorded();
    assert_eq!(cupti.records_unknown, 1);
    assert!(found.len() < KERNELS, "those behind it are not found");
    assert_eq!(
        (lost.unreadable, found.len() as u64 + lost.incomplete),
        (1, KERNELS as u64)
    );
}

#[test(on = with_cupti().scripts(["cupti record every 4 correlation 4711"]))]
fn kernels_with_a_number_of_no_launch_stand_under_no_scope() {
    let (found, lost, _) = recorded();
    let without = found.iter().filter(|found| found.scope.is_none()).count();
    assert_eq!((found.len(), without as u64), (KERNELS, lost.incomplete));
    assert!(without >= KERNELS / 5, "{without}");
}

#[test(on = with_cupti().scripts([
    "cupti record every 3 after-overhead",
    "cupti early-records on",
    "cupti record-delay 200us",
    "cupti clock ignored",
    "cupti release 12.0",
]))]
fn records_nobody_asked_for_early_records_and_small_delays_lose_nothing() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _scope = scope!("work", stream = &stream);
        (0..KERNELS).for_each(|_| program.kernel(&stream, Some("work")));
        // Until the records are complete.
        stream.synchronize().expect("nothing failed");
        std::thread::sleep(Duration::from_millis(1));
    });
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let found = found(&trace);
    assert_scopes(&found, &program);
    assert_times(&found);
}

#[test(on = with_cupti().scripts(["cupti callbacks foreign"]))]
fn callbacks_on_another_thread_give_no_scope_rather_than_a_wrong_one() {
    let (found, _, _) = recorded();
    assert_eq!((found.len(), truth().len()), (KERNELS, KERNELS));
    assert!(found.iter().all(|found| found.scope.is_none()), "{found:?}");
}

#[test(on = with_cupti().scripts(["cupti callbacks after-unsubscribe"]))]
fn callbacks_after_the_end_do_no_harm() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    for _ in 0..3 {
        let trace = program.record(|program| program.kernel(&stream, None));
        assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
        assert_eq!(found(&trace).len(), 1);
        // No session records this.
        program.gpu.spin(&stream, 5_000);
    }
    assert!(cupti().callbacks > 6, "some came after the end");
}

#[test(on = with_cupti().scripts(["fault cuptiSubscribe nth 1 hang", "fault cuptiActivityEnable nth 1 hang"]))]
fn a_cupti_that_hangs_as_it_starts_holds_up_neither_threads_nor_windows() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let profile = Profile::builder().start().expect("started");
    {
        let _scope = scope!("work", stream = &stream);
        program.gpu.spin(&stream, 5_000);
    }
    program.gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    assert!(!trace.has_kernels());
    tell("clear-faults; release");
    let later = program.record(|program| program.kernel(&stream, None));
    assert!(later.has_kernels(), "{:?}", later.no_kernels_reason());
    assert_scopes(&found(&later), &program);
}
