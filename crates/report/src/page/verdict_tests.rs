use super::*;
use crate::kernels::ScopeKernels;
use crate::times::Times;

const MS: f64 = 1e6;

/// A row with self times in milliseconds; `cuda` also has the fraction of launch-bound calls.
fn row(name: &str, cpu_ms: f64, cuda: Option<(f64, f64)>) -> Row {
    let times = |ms: f64| Times {
        calls: 10,
        self_ns: ms * MS,
        ..Times::default()
    };
    Row {
        name: name.to_owned(),
        calls: 10,
        cpu: Some(times(cpu_ms)),
        cuda: cuda.map(|(ms, _)| times(ms)),
        launch_bound: cuda.map(|(_, share)| share),
        ..Row::default()
    }
}

/// A run of 100 ms.
fn summary(rows: Vec<Row>) -> Summary {
    Summary {
        rows,
        wall_ns: 100.0 * MS,
        cuda: crate::cuda_health::CudaHealth {
            status: "the driver is not loaded".to_owned(),
            ..Default::default()
        },
        ..Summary::default()
    }
}

#[track_caller]
fn assert_sentences(rows: Vec<Row>, expected: [&str; 2]) {
    let found = sentences(&summary(rows), None).map(|sentence| sentence.to_string());
    assert_eq!(found, expected);
}

#[test]
fn without_rows_the_reason_is_given() {
    let mut summary = summary(Vec::new());
    summary.nothing_measured = Some("the filter `x` leaves nothing".to_owned());
    let found = sentences(&summary, None).map(|sentence| sentence.to_string());
    assert_eq!(
        found,
        ["Nothing was measured: the filter `x` leaves nothing.", ""]
    );
}

#[test]
fn without_gpu_times_nothing_is_said_about_the_gpu_but_that_they_are_missing() {
    assert_sentences(
        vec![row("a", 60.0, None), row("b", 10.0, None)],
        [
            "On the CPU, `a` takes 86 % of the measured 70.0 ms.",
            "Work on the CPU limits it: measured functions took 70 % of the run; what the GPU did is not known (the driver \
             is not loaded).",
        ],
    );
}

#[test]
fn threads_may_take_longer_than_the_run() {
    assert_sentences(
        vec![row("a", 150.0, None), row("b", 100.0, None)],
        [
            "On the CPU, `a` takes 60 % of the measured 250 ms and `b` 40 %.",
            "Work on the CPU limits it: measured functions took 2.5 times the length of the run; what the GPU did is not \
             known (the driver is not loaded).",
        ],
    );
}

#[test]
fn a_busy_device_is_the_limit() {
    assert_sentences(
        vec![row("a", 20.0, Some((90.0, 0.1)))],
        [
            "On the CPU, `a` takes 100 % of the measured 20.0 ms; on the GPU, `a` takes 100 % of the measured 90.0 ms.",
            "The GPU limits it: it was busy for 90 % of the run, and most work takes longer than its launch.",
        ],
    );
}

#[test]
fn a_device_that_waits_for_launches_is_not_the_limit() {
    assert_sentences(
        vec![row("a", 60.0, Some((20.0, 0.9))), row("b", 10.0, None)],
        [
            "On the CPU, `a` takes 86 % of the measured 70.0 ms; on the GPU, `a` takes 100 % of the measured 20.0 ms.",
            "It is launch-bound: 90 % of the GPU time is in calls whose launches take at least as long as their work, so the \
             GPU waits for the CPU.",
        ],
    );
}

#[test]
fn gpu_times_of_launch_bound_calls_do_not_show_a_busy_device() {
    let [_, limit] = sentences(&summary(vec![row("a", 95.0, Some((95.0, 1.0)))]), None);
    assert!(
        limit.to_string().starts_with("It is launch-bound: 100 %"),
        "{}",
        limit.to_string()
    );
}

#[test]
fn functions_without_gpu_work_hold_the_device_up() {
    assert_sentences(
        vec![
            row("load", 50.0, None),
            row("log", 5.0, None),
            row("forward", 20.0, Some((10.0, 0.9))),
        ],
        [
            "On the CPU, `load` takes 67 % of the measured 75.0 ms and `forward` 27 %; on the GPU, `forward` takes 100 % of \
             the measured 10.0 ms.",
            "Work on the CPU limits it: the GPU was busy for 10 % of the run, while 73 % of the CPU time is in functions \
             without GPU work, first of all `load`.",
        ],
    );
}

#[test]
fn a_run_that_was_hardly_measured_has_no_verdict() {
    let [_, limit] = sentences(&summary(vec![row("a", 5.0, Some((5.0, 0.0)))]), None);
    assert_eq!(
        limit.to_string(),
        "What limits it was not measured: measured functions took 5 % of the run, and the GPU was busy for 5 %."
    );
}

#[test]
fn threads_that_do_not_run_are_waiting() {
    let mut waiting = row("recv", 80.0, None);
    waiting.self_thread_time_total_ns = Some(8.0 * MS);
    let [_, limit] = sentences(&summary(vec![waiting]), None);
    assert_eq!(
        limit.to_string(),
        "Waiting limits it: for 90 % of the measured time, its threads did not run; what the GPU did is not known (the \
         driver is not loaded)."
    );
}

#[test]
fn missing_gpu_times_make_the_verdict_uncertain() {
    let mut lossy = row("a", 20.0, Some((90.0, 0.1)));
    lossy.without_cuda = 5;
    let [_, limit] = sentences(&summary(vec![lossy]), None);
    assert!(
        limit
            .to_string()
            .ends_with("; this is uncertain, since 5 of 15 GPU times are missing."),
        "{}",
        limit.to_string()
    );
}

/// The work of a function, in milliseconds: busy, with copies alone, idle, and idle before launches.
fn work(name: &str, [busy, copies, idle, gap]: [f64; 4]) -> ScopeKernels {
    ScopeKernels {
        scope: Some(name.to_owned()),
        calls: 10,
        busy_ns: busy * MS,
        copy_ns: copies * MS,
        idle_ns: idle * MS,
        launch_gap_ns: Some(gap * MS),
        ..ScopeKernels::default()
    }
}

/// The limit of a run of 100 ms in which a function without GPU time prepared work for 10 ms.
fn limit_of(scopes: Vec<ScopeKernels>) -> String {
    let rows = vec![
        row("forward", 40.0, Some((90.0, 1.0))),
        row("load", 10.0, None),
    ];
    let kernels = Kernels {
        is_recorded: true,
        scopes,
        ..Kernels::default()
    };
    let [_, limit] = sentences(&summary(rows), Some(&kernels));
    limit.to_string()
}

#[test]
fn recorded_kernels_decide_what_limits_the_run() {
    for (scopes, expected) in [
        (
            vec![
                work("forward", [20.0, 0.0, 60.0, 50.0]),
                work("load", [5.0, 5.0, 0.0, 0.0]),
            ],
            "It is launch-bound: in functions that launch work, the GPU had nothing to do for 60.0 ms of 80.0 ms, mostly \
             because the next work had not been launched, first of all in `forward`.",
        ),
        (
            vec![work("forward", [20.0, 0.0, 60.0, 10.0])],
            "It is gap-bound: in functions that launch work, the GPU waited for 60.0 ms of 80.0 ms, although the next work \
             had been launched, first of all in `forward`.",
        ),
        (
            vec![
                work("forward", [10.0, 0.0, 0.0, 0.0]),
                work("load", [50.0, 40.0, 0.0, 0.0]),
            ],
            "Copies limit it: the GPU was busy for 60 % of the run, and ran copies and fills without kernels for 40.0 ms, \
             first of all in `load`.",
        ),
        (
            vec![work("forward", [90.0, 0.0, 5.0, 5.0])],
            "The GPU limits it: it was busy for 90 % of the run, mostly with kernels, first of all in `forward`.",
        ),
    ] {
        assert_eq!(limit_of(scopes), expected);
    }
}

#[test]
fn the_device_is_busy_for_a_share_of_the_time_in_which_kernels_were_recorded() {
    // The sum over eight processes is longer than the run.
    for processes in [1, 8] {
        let kernels = Kernels {
            is_recorded: true,
            unrecorded_ns: 20.0 * MS * processes as f64,
            processes,
            scopes: vec![work("forward", [60.0, 0.0, 0.0, 0.0])],
            ..Kernels::default()
        };
        let [_, limit] = sentences(&summary(vec![row("forward", 40.0, None)]), Some(&kernels));
        assert_eq!(
            limit.to_string(),
            "The GPU limits it: it was busy for 75 % of the run, mostly with kernels, first of all in `forward`; 20.0 ms, in \
             which kernels were not recorded, are left out of its share."
        );
    }
}

#[test]
fn kernels_without_gpu_times_of_scopes_are_known_too() {
    let kernels = Kernels {
        is_recorded: true,
        scopes: vec![work("forward", [60.0, 0.0, 0.0, 0.0])],
        ..Kernels::default()
    };
    let found = sentences(&summary(vec![row("forward", 40.0, None)]), Some(&kernels));
    assert_eq!(
        found.map(|sentence| sentence.to_string()),
        [
            "On the CPU, `forward` takes 100 % of the measured 40.0 ms; on the GPU, `forward` launched 100 % of the work of \
             60.0 ms.",
            "The GPU limits it: it was busy for 60 % of the run, mostly with kernels, first of all in `forward`.",
        ]
    );
}
