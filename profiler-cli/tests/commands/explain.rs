//! `profiler explain`: why a device waited.

use crate::support::{Folder, Run, command, profiler};

/// A trace as PyTorch writes it, of two steps: a batch is loaded for 600 µs, and a kernel of 150 µs is launched.
const TRACE: &str = r#"{"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 850},
    {"ph": "X", "cat": "cpu_op", "name": "load_batch", "pid": 1, "tid": 1, "ts": 10, "dur": 600},
    {"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 1, "tid": 1, "ts": 620, "dur": 30},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 630, "dur": 10, "args": {"correlation": 7}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 650, "dur": 150, "args": {"correlation": 7, "device": 0, "stream": 7}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 900, "dur": 850},
    {"ph": "X", "cat": "cpu_op", "name": "load_batch", "pid": 1, "tid": 1, "ts": 910, "dur": 600},
    {"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 1, "tid": 1, "ts": 1520, "dur": 30},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1530, "dur": 10, "args": {"correlation": 8}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1550, "dur": 150, "args": {"correlation": 8, "device": 0, "stream": 7}}
]}"#;

const EXPLAINED: &str = "\
GPU 0 (NVIDIA H100): `load_batch` keeps the GPU waiting: the GPU was idle for 71 % of the time between its first work and its last, 80 % of \
that inside of it. Without that, the work would be done at most 2.33 × as fast.

busy                                            ▅█████████▁                                               ▁█████████▆
idle  <<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<         ***~~~~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa*b'         >>>>
      a load_batch 34 %  b forward 1 %  * other functions 4 %  ~ outside of measured functions 3 %
      ' launched, and not begun 0.6 %  < before the first work 37 %  > after the last work 3 %

The window                                        Time  Share
─────────────────────────────────────────────────────────────
busy                                            300 µs   17 %
idle: the host did something else               730 µs   42 %
idle: in the call that launched the next work  10.0 µs  0.6 %
idle: launched, and not begun                  10.0 µs  0.6 %
idle: before the first work                     650 µs   37 %
idle: after the last work                      50.0 µs    3 %

Kept it waiting                  Idle caused  Idle %  Self idle caused  Share  In launch calls  Without it, at most
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
ProfilerStep*                         690 µs    66 %           70.0 µs    9 %                -               2.92 ×
load_batch                            600 µs    57 %            600 µs   81 %                -               2.33 ×
(outside of measured functions)      50.0 µs     5 %           50.0 µs    7 %                -               1.05 ×
forward                              20.0 µs     2 %           10.0 µs    1 %                -               1.02 ×
cudaLaunchKernel                     10.0 µs     1 %           10.0 µs    1 %          10.0 µs               1.01 ×

kernels by function: profiler report --kernels FILE
the time line: profiler html FILE
";

#[test]
fn the_function_that_kept_a_gpu_waiting_is_named_first() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", TRACE.as_bytes());
    let mut explain = command(&["explain", &trace, "--width", "120"]);
    let run: Run = explain
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("it starts")
        .into();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.replace(&trace, "FILE"), EXPLAINED);
    assert!(run.stdout.split_whitespace().count() < 1_500);
}

#[test]
fn the_strip_is_as_wide_as_asked_for_and_has_the_characters_of_the_terminal() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", TRACE.as_bytes());
    let strip = |width: &str, locale: &str| -> Vec<String> {
        let mut explain = command(&["explain", &trace, "--width", width]);
        let run: Run = explain
            .env("LC_ALL", locale)
            .output()
            .expect("it starts")
            .into();
        let lines = run
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("busy  "));
        lines
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    for width in [60, 100, 200] {
        let lines = strip(&width.to_string(), "C");
        let widest = lines.iter().map(String::len).max();
        assert_eq!(widest, Some(width), "{lines:?}");
        assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
    }
    assert!(strip("100", "en_US.UTF-8")[0].contains('█'));
}

#[test]
fn the_numbers_in_json_add_up() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", TRACE.as_bytes());
    let run = profiler(&["explain", &trace, "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
    let device = &json["devices"][0];
    let ns = |key: &str| device[key].as_i64().expect("a time");
    assert_eq!(ns("window_ns"), 1_750_000);
    assert_eq!(
        ns("busy_ns") + ns("idle_ns") + ns("not_recorded_ns"),
        ns("window_ns")
    );
    let charges = device["charges"].as_array().expect("a list").iter();
    let sum: i64 = charges
        .map(|charge| charge["idle_ns"].as_i64().expect("a time"))
        .sum();
    assert_eq!(sum, ns("host_ns") + ns("in_call_ns"));
}

/// A window of profiler-runtime without kernels: `forward` returns before its work ends, `read` waits for its own.
const PAIRS: &str = r#"{"profiler": {"name": "profiler-runtime"}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "load", "pid": 1, "tid": 1, "ts": 0, "dur": 600, "args": {"External id": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "forward", "pid": 1, "tid": 1, "ts": 600, "dur": 10, "args": {"External id": 2}},
    {"ph": "X", "cat": "cpu_op", "name": "read", "pid": 1, "tid": 1, "ts": 700, "dur": 300, "args": {"External id": 3}},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "forward", "pid": 0, "tid": 7, "ts": 600, "dur": 100, "args": {"External id": 2}},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "read", "pid": 0, "tid": 7, "ts": 700, "dur": 300, "args": {"External id": 3}}
]}"#;

const EXPLAINED_PAIRS: &str = "\
GPU 0: Most of the window is start-up: the first work began after 600 µs, 60 % of the window. The host paces the GPU: the GPU was \
busy for 25 % of the time between its first work and its last, host-paced for 75 %, and idle for 0 %. It was host-paced longest in \
`read`. Kernels were not recorded: without them it is not known how much of its host-paced time it was idle.

The window    Time  Share
─────────────────────────
busy        100 µs   10 %
host-paced  300 µs   30 %
idle        600 µs   60 %

GPU times by function: profiler report FILE; kernels: record with PROFILER_KERNELS=1
the time line: profiler html FILE
";

#[test]
fn without_kernels_the_three_states_of_a_gpu_are_told_apart() {
    let folder = Folder::new();
    let trace = folder.file("pairs.json", PAIRS.as_bytes());
    let run = profiler(&["explain", &trace, "--width", "120"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(run.stdout.replace(&trace, "FILE"), EXPLAINED_PAIRS);
    let run = profiler(&["explain", &trace, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
    let device = &json["devices"][0];
    assert_eq!(
        (
            &device["busy_ns"],
            &device["host_paced_ns"],
            &device["idle_ns"]
        ),
        (&100_000.into(), &300_000.into(), &600_000.into())
    );
}

#[test]
fn a_summary_with_gpu_times_says_who_kept_a_gpu_waiting() {
    let folder = Folder::new();
    let summary = r#"{"schema_version": 1, "rows": [], "gpu_idle": [{"device": 0, "busy_ns": 6e9, "host_paced_ns": 1e9,
        "idle_ns": 3e9, "samples": 75, "interval_ns": 4e7, "charges": [{"name": "load", "idle_ns": 2.4e9, "error_ns": 3e7}]}]}"#;
    let file = folder.file("summary.json", summary.as_bytes());
    let run = profiler(&["explain", &file]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(
        run.stdout,
        "GPU 0 for 10.0 s: busy 60 %, host-paced 10 %, idle 30 %, of which load 80 % ± 1 % (75 samples, one in 40.0 ms)\n"
    );
    let run = profiler(&["explain", &file, "--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
    assert_eq!(json["devices"][0]["idle_ns"], 3e9);
    assert_eq!(json["devices"][0]["charges"][0]["name"], "load");
}

#[test]
fn a_file_without_work_of_a_gpu_is_no_answer_and_says_what_shows_the_rest() {
    let folder = Folder::new();
    let host = r#"{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}"#;
    for (name, content, reason) in [
        (
            "summary.json",
            r#"{"schema_version": 1, "rows": []}"#,
            "the program had no GPU times",
        ),
        (
            "short.json",
            r#"{"schema_version": 1, "rows": [{"name": "f", "calls": 1, "cuda": {"calls": 1, "total_ns": 5}}]}"#,
            "does not say when a GPU was idle",
        ),
        ("host.json", host, "the trace has no work of a GPU"),
    ] {
        let file = folder.file(name, content.as_bytes());
        let run = profiler(&["explain", &file]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        let rest = format!("; its CPU times: profiler report {file}\n");
        assert!(
            run.stderr.contains(reason) && run.stderr.ends_with(&rest),
            "{run:?}"
        );
        // Kernels are no remedy for a program without a GPU.
        let has_remedy = name != "summary.json";
        assert_eq!(run.stderr.contains("kernels"), has_remedy, "{run:?}");
    }
}
