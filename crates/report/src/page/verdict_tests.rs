use super::*;
use crate::idle::{DeviceIdle, IdleCharge};
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

/// Returns the sentences of a run without recorded kernels.
fn texts(summary: &Summary) -> Vec<String> {
    let sentences = sentences(summary, &GpuIdle::default());
    sentences.iter().map(ToString::to_string).collect()
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
    let found = texts(&summary(rows));
    assert_eq!(found, expected);
}

#[test]
fn without_rows_the_reason_is_given() {
    let mut summary = summary(Vec::new());
    summary.nothing_measured = Some("the filter `x` leaves nothing".to_owned());
    let found = texts(&summary);
    assert_eq!(
        found,
        ["Nothing was measured: the filter `x` leaves nothing."]
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
    let limit = texts(&summary(vec![row("a", 95.0, Some((95.0, 1.0)))])).remove(1);
    assert!(limit.starts_with("It is launch-bound: 100 %"), "{}", limit);
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
    let limit = texts(&summary(vec![row("a", 5.0, Some((5.0, 0.0)))])).remove(1);
    assert_eq!(
        limit,
        "What limits it was not measured: measured functions took 5 % of the run, and the GPU was busy for 5 %."
    );
}

#[test]
fn threads_that_do_not_run_are_waiting() {
    let mut waiting = row("recv", 80.0, None);
    waiting.self_thread_time_total_ns = Some(8.0 * MS);
    let limit = texts(&summary(vec![waiting])).remove(1);
    assert_eq!(
        limit,
        "Waiting limits it: for 90 % of the measured time, its threads did not run; what the GPU did is not known (the \
         driver is not loaded)."
    );
}

#[test]
fn missing_gpu_times_make_the_verdict_uncertain() {
    let mut lossy = row("a", 20.0, Some((90.0, 0.1)));
    lossy.without_cuda = 5;
    let limit = texts(&summary(vec![lossy])).remove(1);
    assert!(
        limit.ends_with("; this is uncertain, since 5 of 15 GPU times are missing."),
        "{}",
        limit
    );
}

#[test]
fn recorded_kernels_say_what_limits_each_device() {
    let device = |ordinal, busy_ns| DeviceIdle {
        device: Some(ordinal),
        busy_ns,
        host_ns: 100_000 - busy_ns,
        charges: vec![IdleCharge {
            name: Some("load".to_owned()),
            idle_ns: 100_000 - busy_ns,
            inclusive_ns: 100_000 - busy_ns,
            ..IdleCharge::default()
        }],
        ..DeviceIdle::default()
    };
    let idle = |devices: &[DeviceIdle]| GpuIdle {
        devices: devices.to_vec(),
    };
    let texts = |idle: &GpuIdle| {
        let sentences = sentences(&summary(vec![row("load", 40.0, None)]), idle);
        sentences
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let one = texts(&idle(&[device(0, 20_000)]));
    assert_eq!(
        one,
        [
            "On the CPU, `load` takes 100 % of the measured 40.0 ms.",
            "`load` keeps the GPU waiting: the GPU was idle for 80 % of the time between its first work and its last, 100 % of \
             that inside of it. Without that, the work would be done at most 5.00 × as fast.",
        ]
    );
    let two = texts(&idle(&[device(0, 20_000), device(1, 95_000)]));
    assert_eq!(two.len(), 3);
    assert!(
        two[1].starts_with("GPU 0: `load` keeps the GPU waiting"),
        "{two:?}"
    );
    assert!(
        two[2].starts_with("GPU 1: The GPU limits it: it was busy for 95 %"),
        "{two:?}"
    );
    let six: Vec<DeviceIdle> = (0..6).map(|ordinal| device(ordinal, 95_000)).collect();
    let last = texts(&idle(&six)).pop();
    let expected = "2 more GPUs are left out here: `profiler explain` shows all.";
    assert_eq!(last.as_deref(), Some(expected));
    let last = texts(&idle(&six[..5])).pop();
    let expected = "1 more GPU is left out here: `profiler explain` shows all.";
    assert_eq!(last.as_deref(), Some(expected));
}
