//! What tools other than PyTorch and `profiler-runtime` write.

use profiler_report::{Slice, TrackKind};

use super::{complete, name, on_track, read, tree};

#[test]
fn ranks_that_are_merged_into_one_file_have_calls_work_and_devices_of_their_own() {
    let of_rank = |rank: &str, process: u32, work: &str, length: u32| {
        let event = |category: &str, name: &str, process: u32, thread: u32, times: &str| {
            format!(
                r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": "[{rank}] {process}", "tid": {thread}, {times},
                    "args": {{"External id": 1, "correlation": 5, "device": 0, "stream": 7}}}}"#
            )
        };
        [
            event(
                "cpu_op",
                &format!("op of {rank}"),
                process,
                process,
                r#""ts": 0, "dur": 100"#,
            ),
            event(
                "cuda_runtime",
                "cudaLaunchKernel",
                process,
                process,
                r#""ts": 10, "dur": 5"#,
            ),
            event(
                "kernel",
                work,
                0,
                7,
                &format!(r#""ts": 20, "dur": {length}"#),
            ),
        ]
        .join(",")
    };
    let events = [
        of_rank("TP00", 80, "a", 30),
        of_rank("TP01-DP02", 81, "b", 70),
    ];
    let timeline = read(&events.join(","));
    let mut work: Vec<_> = tree(&timeline)
        .into_iter()
        .filter(|(name, ..)| name.len() == 1)
        .collect();
    work.sort_unstable_by_key(|(name, ..)| *name);
    assert_eq!(
        work,
        [("a", "op of TP00", 30.0), ("b", "op of TP01-DP02", 70.0)]
    );
    let streams = timeline
        .tracks
        .iter()
        .filter(|track| track.kind == TrackKind::GpuStream);
    let mut streams: Vec<_> = streams
        .map(|track| (track.rank, track.device, track.id, track.process))
        .collect();
    streams.sort_unstable();
    assert_eq!(
        streams,
        [(Some(0), Some(0), 7, 80), (Some(1), Some(0), 7, 81)]
    );
}

#[test]
fn rows_of_devices_without_categories_are_work_of_these_devices() {
    let process = |pid: u32, name: &str| {
        format!(
            r#"{{"ph": "M", "name": "process_name", "pid": {pid}, "args": {{"name": "{name}"}}}}"#
        )
    };
    let thread = |pid: u32, tid: u32, name: &str| {
        format!(
            r#"{{"ph": "M", "name": "thread_name", "pid": {pid}, "tid": {tid}, "args": {{"name": "{name}"}}}}"#
        )
    };
    let old_row = |process: &str, thread: u32| {
        format!(
            r#"{{"ph": "X", "name": "{process}", "pid": "{process}", "tid": {thread}, "ts": 900, "dur": 10, "args": {{}}}}"#
        )
    };
    let events = [
        process(3, "/device:GPU:2"),
        thread(3, 14, "Stream #14(Compute)"),
        thread(3, 15, "XLA Modules"),
        process(7, "6 GPU1"),
        process(8, "GPUs of the site"),
        complete("", "step", (0.0, 100.0), ""),
        on_track("", "fusion", (3, 14), (50.0, 400.0), ""),
        on_track("", "module", (3, 15), (50.0, 800.0), ""),
        on_track("", "copy", (7, 1), (60.0, 20.0), ""),
        on_track("", "poll", (8, 1), (60.0, 20.0), ""),
        old_row("CUDA functions", 4),
        old_row("CPU functions", 4),
    ];
    let timeline = read(&events.join(","));
    let device = |slice: &Slice| {
        let track = &timeline.tracks[slice.track as usize];
        track.device.filter(|_| slice.kind.is_on_gpu())
    };
    let rows = timeline
        .slices
        .iter()
        .map(|slice| (name(&timeline, slice), device(slice)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            ("CPU functions", None),
            ("CUDA functions", Some(4)),
            ("copy", Some(1)),
            ("fusion", Some(2)),
            ("module", Some(2)),
            ("poll", None),
            ("step", None),
        ]
    );
    let averages = timeline.key_averages();
    // A module of XLA is around its work, and no work itself.
    assert_eq!(averages.self_cuda_time_total_ns, Some(430_000.0));
    assert_eq!(averages.self_cpu_time_total_ns, Some(130_000.0));
    let without = "events have no category (`cat`): they are counted as functions on the CPU";
    assert!(timeline.missing.contains(&(without.to_owned(), 2)));
}

#[test]
fn counters_of_one_name_in_several_processes_or_with_several_ids_are_several() {
    let with_id = |process: u32, id: &str, at: u32, bytes: u32| {
        format!(
            r#"{{"ph": "C", "name": "heap", "pid": {process}, {id}"ts": {at}, "args": {{"bytes": {bytes}}}}}"#
        )
    };
    let counter = |process, at, bytes| with_id(process, "", at, bytes);
    let events = [counter(1, 1, 10), counter(2, 2, 9000), counter(1, 3, 20)];
    let counters = |events: &[String]| {
        let mut counters = read(&events.join(",")).counters.into_iter();
        let found = counters
            .by_ref()
            .map(|counter| (counter.name, counter.samples.len()));
        found.collect::<Vec<_>>()
    };
    let expected = [
        ("heap of process 1".to_owned(), 2),
        ("heap of process 2".to_owned(), 1),
    ];
    assert_eq!(counters(&events), expected);
    assert_eq!(counters(&events[..1]), [("heap".to_owned(), 1)]);
    let ids = [
        with_id(1, r#""id": "0x5", "#, 1, 10),
        with_id(1, r#""id": 7, "#, 2, 9000),
        with_id(1, r#""id": "0x5", "#, 3, 20),
        counter(1, 4, 1),
    ];
    let expected = [("heap", 1), ("heap[7]", 1), ("heap[0x5]", 2)];
    let expected = expected.map(|(name, samples)| (name.to_owned(), samples));
    assert_eq!(counters(&ids), expected);
    assert_eq!(counters(&ids[..1]), [("heap".to_owned(), 1)]);
}

#[test]
fn calls_of_the_libraries_of_all_devices_launch_work() {
    for category in [
        "cuda_driver",
        "hip_runtime",
        "xpu_runtime",
        "xpu_driver",
        "mtia_runtime",
        "privateuse1_runtime",
    ] {
        let events = [
            complete("cpu_op", "aten::mm", (0.0, 100.0), r#""External id": 1"#),
            complete(category, "launch", (10.0, 20.0), r#""correlation": 3"#),
            on_track(
                "kernel",
                "gemm",
                (0, 7),
                (50.0, 50.0),
                r#""correlation": 3"#,
            ),
        ];
        let timeline = read(&events.join(","));
        let gemm = tree(&timeline)
            .into_iter()
            .find(|(name, ..)| *name == "gemm");
        assert_eq!(gemm, Some(("gemm", "aten::mm", 50.0)), "{category}");
        assert_eq!(timeline.launches.len(), 1, "{category}");
    }
}

#[test]
fn ranks_of_groups_may_be_text() {
    let text = r#"{"distributedInfo": {"rank": 0, "pg_config": [
        {"pg_name": "a", "ranks": "[0, 2]"}, {"pg_name": "b", "ranks": [1]}, {"pg_name": "c", "ranks": "[0, ..., 7]"}]},
        "traceEvents": []}"#;
    let groups = super::of_text(text).groups.into_iter();
    let groups: Vec<_> = groups.map(|group| (group.name, group.ranks)).collect();
    assert_eq!(
        groups,
        [("a".to_owned(), vec![0, 2]), ("b".to_owned(), vec![1])]
    );
}

#[test]
fn a_graph_whose_work_is_not_in_the_file_leaves_open_what_the_device_did() {
    let launch = |at: f64, correlation: u32| {
        complete(
            "cuda_runtime",
            "cudaGraphLaunch",
            (at, 20.0),
            &format!(r#""correlation": {correlation}"#),
        )
    };
    let work = |at: f64, correlation: u32| {
        on_track(
            "kernel",
            "gemm",
            (0, 7),
            (at, 100.0),
            &format!(r#""correlation": {correlation}"#),
        )
    };
    let events = [
        complete("cpu_op", "replay", (0.0, 5000.0), r#""External id": 1"#),
        launch(10.0, 1),
        work(50.0, 1),
        launch(1000.0, 2),
        launch(2000.0, 3),
        launch(3000.0, 4),
        work(3100.0, 4),
    ];
    let timeline = read(&events.join(","));
    let gaps = timeline
        .kernel_gaps
        .iter()
        .map(|gap| (gap.start_ns, gap.duration_ns));
    assert_eq!(
        gaps.collect::<Vec<_>>(),
        [(1_000_000, 1_000_000), (2_000_000, 1_100_000)]
    );
    let whole = read(&[&events[..3], &events[5..]].concat().join(","));
    assert_eq!(whole.kernel_gaps, []);
}

#[test]
fn work_that_takes_longer_than_all_else_while_its_stream_goes_on_is_doubted() {
    let work = |name: &str, stream: u32, times: (f64, f64)| {
        on_track("kernel", name, (0, stream), times, "")
    };
    let said = |longest: (u32, (f64, f64))| {
        let events = [
            complete("cpu_op", "f", (0.0, 500.0), ""),
            work("stuck", longest.0, longest.1),
            work("next", 7, (100.0, 10.0)),
        ];
        let missing = read(&events.join(",")).missing;
        missing
            .iter()
            .any(|(reason, _)| reason.starts_with("work, `stuck`, takes longer"))
    };
    assert!(said((7, (50.0, 900.0))));
    assert!(!said((8, (50.0, 900.0))), "on another stream");
    assert!(!said((7, (95.0, 20.0))), "they overlap a little");
}

#[test]
fn a_process_with_the_name_of_a_device_keeps_its_calls_if_categories_say_what_they_are() {
    let events = [
        r#"{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "rank 0 GPU0"}}"#
            .to_owned(),
        complete("cpu_op", "aten::mm", (0.0, 100.0), r#""External id": 1"#),
        complete(
            "cuda_runtime",
            "launch",
            (10.0, 20.0),
            r#""correlation": 3"#,
        ),
        on_track(
            "kernel",
            "gemm",
            (0, 7),
            (50.0, 50.0),
            r#""correlation": 3"#,
        ),
    ];
    let timeline = read(&events.join(","));
    let gemm = tree(&timeline)
        .into_iter()
        .find(|(name, ..)| *name == "gemm");
    assert_eq!(gemm, Some(("gemm", "aten::mm", 50.0)));
    assert_eq!(
        timeline.key_averages().self_cpu_time_total_ns,
        Some(100_000.0)
    );
}
