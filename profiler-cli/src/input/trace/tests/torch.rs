//! Launches and GPU work, as PyTorch writes them, and as `profiler-runtime` does.

use profiler_report::{
    CallTreeOptions, KernelRowKind, KeyAverages, MemoryKind, SliceKind, TableOptions, TrackKind,
    Verdict,
};
use profiler_trace_validator::{Rule, Violation};

use super::{complete, of_text, on_track, read, tree};

/// An operator that launches two kernels; its range on the stream; and a kernel whose launch is not in the file.
fn launches() -> Vec<String> {
    vec![
        complete(
            "user_annotation",
            "ProfilerStep#3",
            (0.0, 1000.0),
            r#""External id": 1"#,
        ),
        complete(
            "user_annotation",
            "forward",
            (10.0, 500.0),
            r#""External id": 2"#,
        ),
        complete("cpu_op", "aten::mm", (20.0, 100.0), r#""External id": 3"#),
        complete(
            "cuda_driver",
            "cuLaunchKernel",
            (32.0, 5.0),
            r#""correlation": 7"#,
        ),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (30.0, 10.0),
            r#""correlation": 7, "External id": 3"#,
        ),
        complete(
            "cuda_runtime",
            "cudaMemcpyAsync",
            (600.0, 10.0),
            r#""correlation": 8"#,
        ),
        on_track(
            "kernel",
            "gemm",
            (0, 7),
            (200.0, 300.0),
            r#""correlation": 7, "device": 0"#,
        ),
        on_track(
            "kernel",
            "late",
            (0, 7),
            (510.0, 20.0),
            r#""correlation": 99, "External id": 3"#,
        ),
        on_track(
            "gpu_memcpy",
            "Memcpy DtoH",
            (0, 7),
            (700.0, 50.0),
            r#""correlation": 8"#,
        ),
        on_track(
            "gpu_user_annotation",
            "forward",
            (0, 7),
            (190.0, 340.0),
            r#""External id": 2"#,
        ),
    ]
}

#[test]
fn work_belongs_to_the_function_around_its_launch() {
    let mut events = launches();
    events.reverse();
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("ProfilerStep*", "-", 490.0),
            ("forward", "ProfilerStep*", 400.0),
            ("aten::mm", "forward", 90.0),
            ("cudaLaunchKernel", "aten::mm", 5.0),
            ("cuLaunchKernel", "cudaLaunchKernel", 5.0),
            ("cudaMemcpyAsync", "ProfilerStep*", 10.0),
            // The range only encloses the work.
            ("forward", "forward", 0.0),
            ("gemm", "aten::mm", 300.0),
            ("late", "aten::mm", 20.0),
            ("Memcpy DtoH", "ProfilerStep*", 50.0),
        ]
    );
    let kinds: Vec<_> = timeline.slices[6..]
        .iter()
        .map(|slice| slice.kind)
        .collect();
    let work = SliceKind::GpuWork;
    assert_eq!(kinds, [SliceKind::GpuRange, work, work, work]);
    let stream = &timeline.tracks[timeline.slices[7].track as usize];
    assert_eq!(
        (stream.kind, stream.device, stream.process),
        (TrackKind::GpuStream, Some(0), 1)
    );
    let steps: Vec<_> = timeline
        .steps
        .iter()
        .map(|step| (step.number, step.start_ns, step.end_ns))
        .collect();
    assert_eq!(steps, [(3, 0, 1_000_000)]);
}

#[test]
fn functions_have_the_gpu_time_of_the_work_that_they_launched() {
    let averages = read(&launches().join(",")).key_averages();
    let cuda = |name| {
        averages
            .row(name)
            .and_then(|row| row.cuda)
            .map(|cuda| (cuda.total_ns, cuda.self_ns))
    };
    assert_eq!(cuda("gemm"), Some((300_000.0, 300_000.0)));
    assert_eq!(cuda("aten::mm"), Some((320_000.0, 0.0)));
    assert_eq!(cuda("ProfilerStep*"), Some((370_000.0, 0.0)));
    assert_eq!(cuda("cudaLaunchKernel"), None);
    assert_eq!(averages.self_cuda_time_total_ns, Some(370_000.0));
    let calls: u64 = averages.rows.iter().map(|row| row.calls).sum();
    assert_eq!(calls, 9);
}

/// Returns the ranges of a row: how many, and how long.
fn ranges(averages: &KeyAverages, name: &str) -> Option<(u64, f64)> {
    let ranges = averages.row(name)?.gpu_ranges?;
    Some((ranges.count, ranges.total_ns))
}

#[test]
fn ranges_on_streams_are_in_no_total() {
    let averages = read(&launches().join(",")).key_averages();
    let forward = averages.row("forward").expect("it was called");
    // The range lasts 340 µs with the pauses between the kernels.
    let cuda = forward.cuda.map(|cuda| (cuda.total_ns, cuda.self_ns));
    assert_eq!(cuda, Some((320_000.0, 0.0)));
    assert_eq!(ranges(&averages, "forward"), Some((1, 340_000.0)));
    // Nor are those on streams without work.
    let range = |name: &str, stream, id: u32| {
        let id = format!("\"External id\": {id}");
        on_track("gpu_user_annotation", name, (0, stream), (0.0, 900.0), &id)
    };
    let mut events = launches();
    events.extend([range("forward", 8, 2), range("alone", 8, 9)]);
    let timeline = read(&events.join(","));
    let averages = timeline.key_averages();
    assert_eq!(averages.self_cuda_time_total_ns, Some(370_000.0));
    assert_eq!(ranges(&averages, "forward"), Some((2, 1_240_000.0)));
    assert_eq!(ranges(&averages, "alone"), Some((1, 900_000.0)));
    let alone = averages.row("alone").expect("a row of its own");
    assert_eq!((alone.calls, alone.cpu, alone.cuda), (0, None, None));
    let table = averages.table(TableOptions::new().width(300));
    assert!(table.contains("GPU ranges"), "{table}");
    let tree = timeline.call_tree(CallTreeOptions::new());
    let of_kernels: f64 = tree
        .nodes
        .iter()
        .filter_map(|node| node.cuda)
        .map(|cuda| cuda.self_ns)
        .sum();
    assert!((of_kernels - 370_000.0).abs() < 0.5, "{of_kernels}");
    assert!(tree.nodes.iter().all(|node| &*node.name != "alone"));
}

#[test]
fn a_kernel_with_the_name_of_its_function_is_counted_once() {
    let events = [
        complete("cpu_op", "fused", (0.0, 10.0), r#""External id": 1"#),
        complete(
            "cuda_driver",
            "cuLaunchKernel",
            (1.0, 2.0),
            r#""correlation": 5"#,
        ),
        on_track(
            "kernel",
            "fused",
            (0, 7),
            (20.0, 30.0),
            r#""correlation": 5"#,
        ),
    ];
    let averages = read(&events.join(",")).key_averages();
    let row = averages.row("fused").expect("it was called");
    let cuda = row.cuda.map(|cuda| (cuda.total_ns, cuda.self_ns));
    assert_eq!(cuda, Some((30_000.0, 30_000.0)));
    assert_eq!((row.calls, row.primitive_calls), (2, 1));
}

#[test]
fn what_profiler_runtime_writes_in_place_of_kernels_is_left_out() {
    let events = [
        complete("cpu_op", "forward", (0.0, 100.0), r#""External id": 1, "full name": "app::forward""#),
        complete("cuda_runtime", "cudaLaunchKernel", (0.0, 0.0), r#""correlation": 100001, "External id": 1, "stand-in": true"#),
        on_track("gpu_user_annotation", "forward", (0, 8), (10.0, 60.0), r#""External id": 1, "full name": "app::forward", "self_ns": 60000"#),
        on_track("kernel", "forward", (0, 8), (10.0, 60.0), r#""correlation": 100001, "scope": true"#),
        r#"{"ph": "i", "cat": "replay", "name": "graph", "pid": 1, "tid": 5, "ts": 90, "args": {"ns": 2000, "self_ns": 1500}}"#.to_owned(),
    ];
    let timeline = of_text(&format!(
        r#"{{"profiler": {{"name": "profiler-runtime", "complete": false, "missing": [["kernels were lost", 7],
            ["scopes were lost", 4], ["it was cut short", 0]]}},
            "deviceProperties": [{{"id": 0, "name": "Simulated"}}], "distributedInfo": {{"rank": 3}},
            "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [{}]}}"#,
        events.join(",")
    ));
    assert_eq!(
        tree(&timeline),
        [
            ("app::forward", "-", 100.0),
            ("app::forward", "app::forward", 60.0)
        ]
    );
    assert_eq!(&*timeline.names[0].short, "forward");
    assert_eq!(timeline.start_unix_ns, 1_700_000_000_000_000_000);
    assert_eq!(timeline.tracks[1].device_name, "Simulated");
    assert_eq!(timeline.tracks[0].rank, Some(3));
    let replay = timeline.replays[0];
    assert_eq!(
        (replay.noticed_ns, replay.duration_ns, replay.self_ns),
        (90_000, 2000, 1500)
    );
    assert_eq!(&*timeline.names[replay.name as usize].text, "graph");
    let counts: Vec<_> = timeline.missing.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [7, 4, 0], "{:?}", timeline.missing);
    let averages = timeline.key_averages();
    let row = averages.row("app::forward").expect("it was called");
    assert_eq!(
        row.cuda.map(|cuda| (cuda.total_ns, cuda.self_ns)),
        Some((60_000.0, 60_000.0))
    );
    assert_eq!(row.launch_bound, Some(1.0));
}

#[test]
fn work_that_overlaps_on_its_stream_gets_a_track_beside() {
    let events = [
        on_track("kernel", "a", (0, 7), (0.0, 10.0), ""),
        on_track("kernel", "b", (0, 7), (5.0, 10.0), ""),
        on_track("kernel", "c", (0, 7), (20.0, 10.0), ""),
        on_track("kernel", "d", (0, 7), (29.0, 1.5), ""),
        on_track("gpu_user_annotation", "all", (0, 7), (0.0, 40.0), ""),
    ];
    let timeline = read(&events.join(","));
    let tracks: Vec<_> = timeline
        .slices
        .iter()
        .map(|slice| timeline.tracks[slice.track as usize].name.as_str())
        .collect();
    let (stream, beside) = ("stream 7", "stream 7 (beside 1)");
    assert_eq!(tracks, [stream, stream, beside, stream, beside]);
    let own: Vec<_> = timeline.slices.iter().map(|slice| slice.self_ns).collect();
    assert_eq!(own, [0, 10_000, 10_000, 10_000, 1500]);
}

#[test]
fn a_step_is_a_call_of_its_thread_also_if_nothing_else_ran_there() {
    let step = |category: &str, number: u32, start: f64| {
        let name = format!("ProfilerStep#{number}");
        on_track(category, &name, (1, 99), (start, 10.0), "")
    };
    // PyTorch 1.8 wrote steps as operators.
    let events = [
        step("user_annotation", 0, 0.0),
        step("Operator", 1, 10.0),
        complete("cpu_op", "f", (1.0, 2.0), ""),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(timeline.steps.len(), 2);
    let averages = timeline.key_averages();
    let own = |name: &str| averages.row(name).and_then(|row| Some(row.cpu?.self_ns));
    assert_eq!(own("ProfilerStep*"), Some(20_000.0));
    assert_eq!(own("f"), Some(2_000.0));
    // Files of our own have their steps on a track of their own: they are calls only if they say so.
    let timeline = of_text(&super::own(&events));
    assert_eq!(timeline.steps.len(), 2);
    assert_eq!(timeline.key_averages().row("ProfilerStep*"), None);
}

#[test]
fn categories_that_are_not_known_are_no_functions() {
    let events = [
        complete("cpu_op", "aten::add", (0.0, 50.0), ""),
        complete("mtia_runtime", "launch", (10.0, 5.0), ""),
        complete("cuda_profiler_range", "range", (0.0, 8500.0), ""),
        complete("cuda_profiler_range", "range", (9000.0, 1.0), ""),
    ];
    let averages = read(&events.join(",")).key_averages();
    assert_eq!(averages.self_cpu_time_total_ns, Some(50_000.0));
    assert!(averages.row("launch").is_some() && averages.row("range").is_none());
    let note = "2 events of the category `cuda_profiler_range` are no known work of a CPU or a device: they are left out";
    assert!(averages.to_json().contains(note), "{averages}");
    // Other programs have categories of their own.
    let averages = read(&events[2..].join(",")).key_averages();
    assert_eq!(averages.row("range").map(|row| row.calls), Some(2));
}

#[test]
fn work_without_a_launch_is_counted_in_a_note() {
    let events = [
        complete("cpu_op", "aten::add", (0.0, 50.0), r#""External id": 1"#),
        on_track(
            "kernel",
            "a",
            (0, 7),
            (10.0, 1.0),
            r#""correlation": 7, "stream": 7"#,
        ),
        on_track(
            "gpu_memcpy",
            "b",
            (0, 7),
            (20.0, 1.0),
            r#""correlation": 8, "stream": 7"#,
        ),
    ];
    let launch = complete(
        "cuda_runtime",
        "cudaLaunchKernel",
        (5.0, 1.0),
        r#""correlation": 7"#,
    );
    let notes = |events: &[String]| read(&events.join(",")).key_averages().to_json();
    let expected = "kernels, copies and fills have no launch in the file";
    assert!(notes(&events).contains(&format!("2 {expected}")));
    let with_launch = [&events[..], &[launch]].concat();
    assert!(notes(&with_launch).contains(&format!("1 {expected}")));
    assert!(!notes(&with_launch[..1]).contains(expected));
}

/// Launches, a kernel and a copy with the arguments of PyTorch.
fn kernels() -> Vec<String> {
    vec![
        complete("cpu_op", "aten::add", (0.0, 50.0), r#""External id": 1"#),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (10.0, 5.0),
            r#""correlation": 7, "External id": 1"#,
        ),
        complete(
            "cuda_runtime",
            "cudaMemcpyAsync",
            (20.0, 5.0),
            r#""correlation": 8, "External id": 1"#,
        ),
        complete(
            "cuda_runtime",
            "cudaDeviceSynchronize",
            (30.0, 5.0),
            r#""correlation": 9"#,
        ),
        on_track(
            "kernel",
            "void at::native::add<float>(float*)",
            (0, 7),
            (20.0, 10.0),
            r#""External id": 1, "device": 0, "context": 1, "stream": 7, "correlation": 7,
               "registers per thread": 32, "shared memory": 1024, "grid": [8, 2, 1], "block": [128, 1, 1],
               "graph node id": 0"#,
        ),
        on_track(
            "gpu_memcpy",
            "Memcpy DtoH (Device -> Pinned)",
            (0, 7),
            (30.0, 4.0),
            r#""External id": 1, "device": 0, "stream": 7, "correlation": 8, "bytes": 4000"#,
        ),
    ]
}

#[test]
fn kernels_and_copies_say_what_they_did() {
    let timeline = read(&kernels().join(","));
    let calls: Vec<&str> = timeline
        .launches
        .iter()
        .map(|launch| &*timeline.names[launch.name as usize].text)
        .collect();
    assert_eq!(calls, ["cudaLaunchKernel", "cudaMemcpyAsync"]);
    let kernels = timeline.key_averages().kernels();
    let [scope] = &kernels.scopes[..] else {
        panic!("one function launched both: {kernels:?}")
    };
    assert_eq!(scope.scope.as_deref(), Some("aten::add"));
    assert_eq!((scope.calls, scope.launches), (1, Some(2)));
    // The device had nothing to do for the first 20 µs, and worked for 14.
    assert_eq!(scope.verdict(), Some(Verdict::LaunchBound));
    let [add, copy] = &scope.rows[..] else {
        panic!("two rows: {scope:?}")
    };
    assert_eq!((&*add.short, add.times.total_ns), ("add", 10_000.0));
    let KernelRowKind::Kernel(used) = add.kind else {
        panic!("a kernel: {add:?}")
    };
    assert_eq!((used.grid.max, used.block.max), ([8, 2, 1], [128, 1, 1]));
    assert_eq!((used.registers.min, used.shared_bytes.max), (32, 1024));
    let KernelRowKind::Copy(copied) = copy.kind else {
        panic!("a copy: {copy:?}")
    };
    assert_eq!(
        (copied.from, copied.to),
        (MemoryKind::Device, MemoryKind::Pinned)
    );
    assert_eq!(copy.gigabytes_per_second(), Some(1.0));
}

#[test]
fn kernels_in_files_of_profiler_runtime_are_inside_the_gpu_times_of_scopes() {
    let events = [
        complete(
            "cpu_op",
            "forward",
            (0.0, 20.0),
            r#""External id": 1, "self_ns": 20000"#,
        ),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (5.0, 2.0),
            r#""correlation": 100001, "External id": 1, "counted": false"#,
        ),
        on_track(
            "gpu_user_annotation",
            "forward",
            (0, 8),
            (10.0, 60.0),
            r#""External id": 1, "self_ns": 60000"#,
        ),
        on_track(
            "kernel",
            "gemm",
            (0, 8),
            (15.0, 40.0),
            r#""External id": 1, "correlation": 100001, "grid": [1, 1, 1], "block": [32, 1, 1]"#,
        ),
    ];
    let timeline = of_text(&format!(
        r#"{{"profiler": {{"name": "profiler-runtime"}}, "traceEvents": [{}]}}"#,
        events.join(",")
    ));
    assert_eq!(
        tree(&timeline),
        [
            ("forward", "-", 20.0),
            ("forward", "forward", 60.0),
            ("gemm", "forward", 40.0)
        ]
    );
    assert_eq!(timeline.launches.len(), 1);
    let averages = timeline.key_averages();
    assert_eq!(averages.rows.len(), 1, "kernels are no rows");
    assert_eq!(averages.self_cuda_time_total_ns, Some(60_000.0));
    let kernels = averages.kernels();
    assert_eq!(kernels.scopes[0].rows[0].name, "gemm");
    assert!((kernels.scopes[0].busy_ns - 40_000.0).abs() < 0.5);
}

#[test]
fn the_reader_and_the_validator_know_the_same_steps() {
    let file = std::env::temp_dir().join(format!("steps-{}.json", std::process::id()));
    for (name, is_known) in [
        ("ProfilerStep#0", true),
        ("ProfilerStep#18446744073709551615", true),
        ("ProfilerStep#last", false),
        ("ProfilerStep", false),
        ("app::ProfilerStep#5", false),
    ] {
        let step = complete("user_annotation", name, (0.0, 10.0), "");
        assert_eq!(read(&step).steps.len(), usize::from(is_known), "{name}");
        std::fs::write(&file, format!(r#"{{"traceEvents": [{step}]}}"#)).expect("a file");
        let violations = profiler_trace_validator::validate(&file).expect("a trace");
        let refused = |violation: &Violation| violation.rule == Rule::Step;
        assert_eq!(!violations.iter().any(refused), is_known, "{name}");
    }
    std::fs::remove_file(file).expect("a file");
}
