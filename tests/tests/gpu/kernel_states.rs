//! If CUPTI cannot record, or loses something, windows say so, and everything else is measured.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::session::{Event, LostWork};
use profiler_runtime::{Profile, Trace, init, scope};
use profiler_simulated_driver::Installation;
use profiler_tests::gpu::{
    self, Gpu, checked, cupti_of_driver, is_child, kernels, on_driver, on_the_driver_with,
    simulator,
};

const PATIENCE: Duration = Duration::from_secs(20);
const KERNELS: u64 = 20;

/// Runs the test again with a driver that has run `script`.
fn is_here(script: &str, set_up: impl FnOnce(&mut Command)) -> bool {
    if !is_child() && profiler_tests::measuring() {
        checked(on_the_driver_with(script, set_up));
    }
    is_child()
}

/// Records a window with some kernels in one scope.
fn window() -> Arc<Trace> {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let profile = Profile::builder().start().expect("started");
    simulator().advance(1_000_000_000).expect("virtual");
    {
        let _scope = scope!("scope", stream = &stream);
        for _ in 0..KERNELS {
            gpu.spin(&stream, 1_000);
        }
    }
    gpu.context.synchronize().expect("nothing failed");
    profile.stop();
    assert!(profile.wait(PATIENCE));
    let trace = profile.trace().expect("a trace");
    // Whatever happens to the kernels, the scope has its GPU time.
    let scope = trace.events().find(|event| event.name() == "scope");
    let time = scope.and_then(Event::gpu).expect("a GPU time");
    gpu::exact(time.ns, 20_000.0);
    trace
}

/// Returns the lengths of the work of a window that has a scope.
fn kernels_in_scope(trace: &Trace) -> u64 {
    let kernels = trace.gpu_work().filter(|work| work.scope().is_some());
    kernels.count() as u64
}

#[test]
fn a_library_that_is_not_there_is_reported() {
    let set_up = |command: &mut Command| {
        kernels(command);
        command.env("PROFILER_CUPTI_LIBRARY", "/no/such/libcupti.so.12");
    };
    if !is_here("", set_up) {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(
        reason.contains("/no/such/libcupti.so.12 cannot be loaded")
            && reason.contains("PROFILER_CUPTI_LIBRARY"),
        "{reason}"
    );
    assert_eq!(kernels_in_scope(&trace), 0);
}

#[test]
fn a_tool_that_has_cupti_is_named() {
    if !is_child() && profiler_tests::measuring() {
        let newer = |folder: &std::path::Path| Installation::new(folder).cupti_release("13.0");
        let ran = checked(on_driver(newer, "cupti holder Nsight Systems", kernels));
        assert_eq!(ran.warnings(), 1, "{}", ran.stderr);
        // Without a request there is no warning.
        let ran = checked(on_driver(
            newer,
            "cupti holder Nsight Systems",
            cupti_of_driver,
        ));
        assert_eq!(ran.warnings(), 0, "{}", ran.stderr);
    }
    if !is_child() {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    let tool = Some("Nsight Systems".to_owned());
    assert_eq!(kernel_status(), KernelStatus::Taken { tool });
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains("(Nsight Systems)"), "{reason}");
}

#[test]
fn a_refused_call_is_reported_with_its_code() {
    if !is_here("fault cuptiActivityEnable always return 35", kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(
        reason.contains("refused cuptiActivityEnable") && reason.contains("code 35"),
        "{reason}"
    );
    let report = simulator().report().expect("a report");
    assert!(!report.cupti.subscribed, "other tools can use it");
}

#[test]
fn a_library_without_a_function_is_too_old() {
    if !is_child() && profiler_tests::measuring() {
        let older =
            |folder: &std::path::Path| Installation::new(folder).without("cuptiActivityFlushAll");
        checked(on_driver(older, "", kernels));
    }
    if !is_child() {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    let status = kernel_status();
    assert!(
        matches!(&status, KernelStatus::TooOld { reason, .. } if reason == "lacks cuptiActivityFlushAll"),
        "{status}"
    );
    assert!(!trace.has_kernels());
}

#[test]
fn each_release_of_cupti_is_read() {
    for release in ["11.8", "12.0", "12.4", "12.9", "13.0", "13.5"] {
        if !is_child() && profiler_tests::measuring() {
            let of = |folder: &std::path::Path| Installation::new(folder).cupti_release(release);
            let ran = checked(on_driver(of, "", kernels));
            assert!(!ran.report.cupti.subscribed, "{release}");
        }
    }
    if !is_child() {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    assert_eq!(kernels_in_scope(&trace), KERNELS, "{}", kernel_status());
    assert_eq!(trace.lost_work(), LostWork::default());
}

#[test]
fn records_that_are_dropped_are_counted() {
    if !is_here("cupti record nth 3 drop", kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    let lost = window().lost_work();
    assert_eq!((lost.dropped, lost.incomplete), (1, 1));
}

#[test]
fn kernels_without_times_are_counted_and_there() {
    if !is_here("cupti record nth 3 untimed", kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    assert_eq!(trace.lost_work().without_time, 1);
    assert_eq!(kernels_in_scope(&trace), KERNELS);
}

#[test]
fn buffers_that_never_return_are_counted() {
    if !is_here("cupti keep-buffers 1", kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    let lost = trace.lost_work();
    assert!(lost.incomplete > 0, "{lost:?}");
    assert_eq!(kernels_in_scope(&trace) + lost.incomplete, KERNELS);
}

#[test]
fn records_may_come_before_the_call_has_returned_and_beside_unknown_ones() {
    let script = "cupti early-records on\ncupti record every 2 after-unknown";
    if !is_here(script, kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    let trace = window();
    assert_eq!(kernels_in_scope(&trace), KERNELS);
    assert_eq!(trace.lost_work(), LostWork::default());
}

#[test]
fn callbacks_after_the_end_do_no_harm() {
    if !is_here("cupti callbacks after-unsubscribe", kernels) {
        return;
    }
    let _profiler = init().expect("set up");
    for _ in 0..2 {
        let trace = window();
        assert_eq!(kernels_in_scope(&trace), KERNELS);
    }
}
