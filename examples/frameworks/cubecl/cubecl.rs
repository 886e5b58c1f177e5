//! Kernels of CubeCL stand at the functions that asked for them.

use check::{Program, Ran};
use profiler_runtime::report::SliceKind;

/// CUPTI has time to start before the first kernel is loaded, and the profiler's crates must not wait for a device.
const SCRIPT: &str = "default-kernel 30us; fault cuModuleLoadData nth 1 delay 2s; \
                      fault cuModuleLoadDataEx nth 1 delay 2s; synchronise abort-from profiler_";

fn otherwise(what: &str, script: &str) -> Program {
    let mut program = Program::new(env!("CARGO_BIN_EXE_with-cubecl-otherwise"), script);
    program.command.arg(what);
    program
}

/// Returns how long the kernels of this name ran, by the driver's own account. CubeCL adds a hash to a name.
fn truth_of(ran: &Ran, kernel: &str) -> u64 {
    let is_it = |name: &String| {
        (name.strip_prefix(kernel)).is_some_and(|rest| rest.starts_with('_') && rest.len() == 9)
    };
    let kernels = ran.report.kernels();
    let theirs = kernels.filter(|kernel| kernel.name.as_ref().is_some_and(is_it));
    theirs.map(|kernel| kernel.end - kernel.start).sum()
}

#[test]
fn kernels_stand_at_the_functions_that_asked_on_three_threads() {
    let ran = Program::new(env!("CARGO_BIN_EXE_with-cubecl"), SCRIPT).run();
    let functions = [
        ("with_cubecl::forward", "add_one", 200),
        ("with_cubecl::activate", "double", 200),
        ("with_cubecl::backward", "square", 100),
    ];
    let is_at = ran.device_ns();
    for (function, kernel, count) in functions {
        let truth = truth_of(&ran, kernel);
        assert_eq!(truth, count * 30_000, "{kernel}");
        assert_eq!(
            is_at.get(function),
            Some(&(truth as f64)),
            "{function}: {is_at:?}"
        );
    }
    let share = ran.share_of(&functions.map(|(function, ..)| function));
    assert!(share >= 0.99, "{share}: {is_at:?}");
    assert!(!ran.stderr.contains("CubeCL"), "{}", ran.stderr);
}

#[test]
fn no_call_of_cuda_is_added() {
    let [with, without] = ["observed", "unobserved"].map(|what| otherwise(what, SCRIPT).run());
    let function = "with_cubecl_otherwise::forward";
    assert!(with.share_of(&[function]) >= 0.99, "{:?}", with.device_ns());
    assert!(
        without.share_of(&[function]) <= 0.0,
        "{:?}",
        without.device_ns()
    );
    assert_eq!(with.report.waiting_calls(), without.report.waiting_calls());
    for call in [
        "cuEventRecord",
        "cuEventQuery",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
    ] {
        assert_eq!(
            with.report.calls_of(call),
            without.report.calls_of(call),
            "{call}"
        );
    }
}

#[test]
fn launches_that_never_happen_are_counted_and_move_no_other() {
    let ran = otherwise("never-launched", SCRIPT).run();
    let is_at = ran.device_ns();
    assert_eq!(
        is_at.get("with_cubecl_otherwise::after"),
        Some(&3e6),
        "{is_at:?}"
    );
    assert_eq!(
        is_at.get("with_cubecl_otherwise::warm_up"),
        None,
        "{is_at:?}"
    );
    assert!(
        ran.stdout.contains("unknown: 0, never_launched: 100"),
        "{}",
        ran.stdout
    );
    let warnings = ran
        .stderr
        .matches("launches that were not seen to happen")
        .count();
    assert_eq!(warnings, 1, "{}", ran.stderr);
}

#[test]
fn a_device_that_is_not_named_is_named_in_a_warning() {
    let ran = otherwise("other-device", SCRIPT).run();
    let is_at = ran.device_ns();
    assert_eq!(
        is_at.get("with_cubecl_otherwise::forward"),
        None,
        "{is_at:?}"
    );
    assert!(ran.stdout.contains("unknown: 100"), "{}", ran.stdout);
    let warnings = ran
        .stderr
        .matches("Observer::new().devices([0, 1])")
        .count();
    assert_eq!(warnings, 1, "{}", ran.stderr);
}

#[test]
fn notes_of_many_streams_do_not_displace_each_other() {
    let ran = otherwise("streams", SCRIPT).run();
    let is_at = ran.device_ns();
    let after = is_at.get("with_cubecl_otherwise::after");
    assert_eq!(after, Some(&3e4), "{is_at:?}");
    // 64 notes have a place, the last of them that of `after`. The launches whose notes these displace are known never to come.
    assert!(
        ran.stdout.contains("unknown: 0, never_launched: 37"),
        "{}",
        ran.stdout
    );
}

#[test]
fn runners_that_ask_for_launches_do_not_wait_for_each_other() {
    let script = format!("devices 2; {SCRIPT}");
    let ran = otherwise("on-runners", &script).run();
    let share = ran.share_of(&["with_cubecl_otherwise::forward"]);
    assert!(share >= 0.99, "{:?}", ran.device_ns());
    assert!(ran.stdout.contains("unknown: 0"), "{}", ran.stdout);
}

#[test]
fn device_times_need_no_cupti() {
    device_times_are_reported("device-times");
}

#[test]
fn device_times_need_no_launch_hook() {
    device_times_are_reported("other-hook");
}

fn device_times_are_reported(what: &str) {
    // A thread of the crate's waits for the times, and no other.
    let script = "default-kernel 30us; synchronise abort-from profiler_cubecl::adapter";
    let ran = otherwise(what, script).without_cupti().run();
    let reported = ran
        .stdout
        .lines()
        .find_map(|line| line.strip_suffix(" ns reported"));
    let reported: f64 = reported.expect("a time").parse().expect("a number");
    // What passes between the two events of a time counts too, but no two times overlap.
    assert!(reported >= truth_of(&ran, "add_one") as f64, "{reported}");
    let all = ran.timeline.duration_ns as f64;
    assert!(reported <= all, "{reported} of {all}");
    let slices = ran.timeline.slices.iter();
    let times = slices.filter(|slice| slice.kind == SliceKind::GpuScope);
    assert_eq!(times.count(), 101);
    assert!(ran.stdout.contains("lost_times: 0"), "{}", ran.stdout);
}
