use super::*;
use crate::idle::{DeviceIdle, IdleCharge};
use crate::sampled_idle::{SampledCharge, SampledIdle};
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
    let said = sentences(summary, &GpuIdle::default(), &GpuPairs::default());
    said.sentences.iter().map(ToString::to_string).collect()
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
            "What limits the program is not known: measured functions took 70 % of the run, and whether they worked or waited was not \
             measured (PROFILER_THREAD_TIME=1); what the GPU did is not known (the driver is not loaded).",
        ],
    );
}

/// A row without GPU times whose threads ran on a processor for a part of its time.
fn worked(name: &str, cpu_ms: f64, on_processor_ms: f64) -> Row {
    Row {
        self_thread_time_total_ns: Some(on_processor_ms * MS),
        ..row(name, cpu_ms, None)
    }
}

#[track_caller]
fn assert_limit(rows: Vec<Row>, expected: &str) {
    let limit = texts(&summary(rows)).remove(1);
    assert!(limit.starts_with(expected), "{limit}");
}

#[test]
fn functions_that_run_on_processors_are_the_limit() {
    assert_limit(
        vec![worked("a", 90.0, 88.0)],
        "Work on the CPU limits the program: measured functions ran on processors for 88 % of the run; what",
    );
    assert_limit(
        vec![worked("a", 90.0, 55.0)],
        "Work and waits limit the program: measured functions took 90 % of the run, and ran on processors for 55 % of it; what",
    );
}

/// It was “Work on the CPU limits it: measured functions took 100 % of the run”.
#[test]
fn a_program_that_sleeps_does_not_work() {
    assert_limit(
        vec![row("sleep", 100.0, None)],
        "What limits the program is not known: measured functions took 100 % of the run, and whether they worked or waited was not",
    );
    assert_limit(
        vec![worked("sleep", 100.0, 0.1)],
        "Waiting limits the program: for 100 % of the measured time, its threads did not run; what the GPU did",
    );
}

/// It was “Waiting limits it: for 73 % of the measured time, its threads did not run”.
#[test]
fn threads_that_wait_for_one_that_works_are_not_the_limit() {
    assert_limit(
        vec![worked("recv", 270.0, 1.0), worked("solve", 100.0, 99.0)],
        "Work on the CPU limits the program: measured functions ran on processors for 100 % of the run; what the GPU did",
    );
}

/// It was “Waiting limits it: for 90 % of the measured time, its threads did not run”.
#[test]
fn a_wait_that_takes_little_of_the_run_is_not_the_limit() {
    assert_limit(
        vec![worked("recv", 10.0, 1.0)],
        "What limits the program was not measured: measured functions took 10 % of the run; what the GPU did",
    );
}

#[test]
fn threads_may_take_longer_than_the_run() {
    assert_sentences(
        vec![row("a", 150.0, None), row("b", 100.0, None)],
        [
            "On the CPU, `a` takes 60 % of the measured 250 ms and `b` 40 %.",
            "What limits the program is not known: measured functions took 2.5 times the length of the run, and whether they worked or \
             waited was not measured (PROFILER_THREAD_TIME=1); what the GPU did is not known (the driver is not loaded).",
        ],
    );
}

#[test]
fn a_busy_device_is_the_limit() {
    assert_sentences(
        vec![row("a", 20.0, Some((90.0, 0.0)))],
        [
            "On the CPU, `a` takes 100 % of the measured 20.0 ms; on the GPU, `a` takes 100 % of the measured 90.0 ms.",
            "The GPU limits the program: the GPU was busy for 90 % of the run, host-paced for 0 %, and idle for 10 %.",
        ],
    );
    assert_limit(
        vec![row("a", 20.0, Some((89.0, 0.0)))],
        "Mostly the GPU limits the program: the GPU was busy for 89 % of the run",
    );
}

/// It was “The GPU limits it: it was busy for 32 % of the run, and most work takes longer than its launch”.
#[test]
fn a_device_that_is_mostly_idle_is_not_the_limit() {
    assert_limit(
        vec![row("a", 20.0, Some((32.0, 0.0))), row("load", 70.0, None)],
        "The GPU waits for the host: the GPU was busy for 32 % of the run, host-paced for 0 %, and idle for 68 %.",
    );
}

/// It was “The host paces the GPU: it was busy for 0 % of the run”.
#[test]
fn times_that_were_only_reported_are_of_a_busy_device() {
    let mut replayed = row("graph", 0.0, Some((95.0, 0.0)));
    replayed.launch_bound = None;
    if let Some(cuda) = &mut replayed.cuda {
        cuda.calls = 0;
    }
    assert_limit(
        vec![replayed],
        "The GPU limits the program: the GPU was busy for 95 % of the run, host-paced for 0 %, and idle for 5 %",
    );
}

#[test]
fn the_account_of_the_running_statistics_comes_before_the_sums_of_rows() {
    let account = SampledIdle {
        device: Some(0),
        busy_ns: 50.0 * MS,
        host_paced_ns: 10.0 * MS,
        idle_ns: 40.0 * MS,
        charges: vec![SampledCharge {
            name: "load".to_owned(),
            idle_ns: 30.0 * MS,
            error_ns: 2.0 * MS,
            ..SampledCharge::default()
        }],
        interval_ns: MS,
        ..SampledIdle::default()
    };
    let mut of_run = summary(vec![row("load", 40.0, Some((90.0, 0.0)))]);
    of_run.gpu_idle.push(account.clone());
    let limit = "The GPU waits for the host: the GPU was busy for 50 % of the 100 ms from its first GPU time to its last, \
                 host-paced for 10 %, and idle for 40 %. `load` kept it waiting for 75 % ± 5 % of its idle time.";
    let found = texts(&of_run);
    assert_eq!((found.len(), found[1].as_str()), (2, limit));
    of_run.gpu_idle.push(SampledIdle {
        device: Some(1),
        unplaced: 3,
        charges: Vec::new(),
        outside_ns: 40.0 * MS,
        ..account
    });
    let found = texts(&of_run);
    assert_eq!(found[1], format!("GPU 0: {limit}"));
    let end = "Code outside of measured functions kept it waiting for 100 % ± 0 % of its idle time. This is uncertain: 3 GPU \
               times have no place in it.";
    assert!(
        found[2].starts_with("GPU 1: ") && found[2].ends_with(end),
        "{found:?}"
    );
}

#[test]
fn a_device_that_was_observed_for_little_of_the_run_does_not_say_what_limits_it() {
    let mut of_run = summary(vec![row("load", 40.0, Some((5.0, 0.0)))]);
    of_run.gpu_idle.push(SampledIdle {
        busy_ns: 5.0 * MS,
        ..SampledIdle::default()
    });
    let limit = texts(&of_run).remove(1);
    let expected = "The GPU waits for the host: the GPU was busy for 5 % of the run";
    assert!(limit.starts_with(expected), "{limit}");
}

/// It was “The GPU limits it: it was busy for 100 % of the run”.
#[test]
fn a_pair_around_others_does_not_show_a_busy_device() {
    let mut epoch = row("epoch", 99.0, Some((80.0, 0.0)));
    if let Some(cuda) = &mut epoch.cuda {
        cuda.total_ns = 100.0 * MS;
    }
    assert_limit(
        vec![epoch, row("step", 1.0, Some((20.0, 0.0)))],
        "The host paces the GPU: the GPU was busy for 20 % of the run, host-paced for 80 %, and idle for 0 %.",
    );
}

/// It was “The GPU limits it: it was busy for 100 % of the run”.
#[test]
fn two_streams_that_work_half_of_the_time_are_not_one_that_works_always() {
    let mut both = row("both", 20.0, Some((100.0, 0.0)));
    both.streams = vec!["0x1".to_owned(), "0x2".to_owned()];
    assert_limit(
        vec![both],
        "The GPU waits for the host: the GPU was busy for 50 % of the run",
    );
}

/// It was “Work on the CPU limits it”, of functions that may have waited for the device.
#[test]
fn a_device_that_waits_for_launches_is_not_the_limit() {
    assert_limit(
        vec![row("a", 60.0, Some((60.0, 1.0))), row("b", 40.0, None)],
        "The host paces the GPU: the GPU was busy for 0 % of the run, host-paced for 60 %, and idle for 40 %.",
    );
}

#[test]
fn a_run_that_was_hardly_measured_has_no_verdict() {
    let limit = texts(&summary(vec![row("a", 5.0, Some((5.0, 0.0)))])).remove(1);
    assert_eq!(
        limit,
        "What limits the program was not measured: measured functions took 5 % of the run, and their work on the GPU 5 %."
    );
}

#[test]
fn missing_gpu_times_make_the_verdict_uncertain() {
    let mut lossy = row("a", 20.0, Some((90.0, 0.0)));
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
    let said = |idle: &GpuIdle| {
        let of_run = summary(vec![row("load", 40.0, None)]);
        let said = sentences(&of_run, idle, &GpuPairs::default());
        let texts = |sentences: Vec<Sentence>| -> Vec<String> {
            sentences.iter().map(ToString::to_string).collect()
        };
        (texts(said.sentences), texts(said.folded))
    };
    let texts = |idle: &GpuIdle| said(idle).0;
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
        two[2].starts_with("GPU 1: The GPU limits the program: the GPU was busy for 95 %"),
        "{two:?}"
    );
    let busy = [95_000, 95_000, 20_000, 95_000, 95_000];
    let devices: Vec<DeviceIdle> = (0..)
        .zip(busy)
        .map(|(ordinal, busy)| device(ordinal, busy))
        .collect();
    let (four, folded) = said(&idle(&devices[..4]));
    assert_eq!((four.len(), folded.len()), (5, 0));
    let (five, folded) = said(&idle(&devices));
    assert_eq!(five.len(), 2);
    assert!(
        five[1].starts_with("GPU 2, the least busy of 5: `load` keeps the GPU waiting"),
        "{five:?}"
    );
    let titles = folded
        .iter()
        .map(|text| text.split(':').next().unwrap_or_default());
    assert_eq!(
        titles.collect::<Vec<_>>(),
        ["GPU 0", "GPU 1", "GPU 3", "GPU 4"]
    );
    let many: Vec<DeviceIdle> = (0..100).map(|ordinal| device(ordinal, 95_000)).collect();
    let (_, folded) = said(&idle(&many));
    assert_eq!(folded.len(), 61);
    let expected = "39 more are left out here: `profiler explain` shows all.";
    assert_eq!(folded[60], expected);
}
