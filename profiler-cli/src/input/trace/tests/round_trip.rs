//! A trace that is read, written and read again is the same: its table, its steps, its launches and its categories. What is
//! written follows the rules of the tools.

use std::collections::{BTreeMap, BTreeSet};

use profiler_report::{GpuWorkKind, SliceEnding, SliceKind, Timeline, TrackKind};
use profiler_trace_validator::{Rule, validate};
use proptest::prelude::*;

use super::any_timeline::whole;
use super::{complete, name, of_text, on_track, read};

/// Writes a time line and reads it again. Returns it with the text of the file.
pub(super) fn written(timeline: &Timeline) -> (Timeline, String) {
    let folder = std::env::temp_dir();
    let thread = std::thread::current();
    let path = folder.join(format!(
        "round-trip-{}-{:?}.json",
        std::process::id(),
        thread.id()
    ));
    timeline.export_chrome_trace(&path).expect("room");
    let mut found = validate(&path).expect("a file");
    // Work may begin before its launch in the trace that was read.
    found.retain(|violation| violation.rule != Rule::BeforeLaunch);
    let text = std::fs::read_to_string(&path).expect("text");
    std::fs::remove_file(&path).expect("it is there");
    assert!(found.is_empty(), "{found:#?}\n{text}");
    (of_text(&text), text)
}

/// The category of a slice, its name, and the name of its parent.
type Shown = (String, String, String);

/// The process, the rank, the device, the id and the name of a track.
type NamedTrack = (u64, Option<u64>, Option<u32>, u64, String);

/// What a time line shows beside its table.
#[derive(Debug, PartialEq)]
struct Facts {
    /// How often each of them occurs.
    slices: BTreeMap<Shown, u64>,
    steps: Vec<(u64, i64, i64, bool)>,
    launches: BTreeSet<(i64, i64, bool)>,
    tracks: BTreeSet<NamedTrack>,
    counters: Vec<(String, String, Option<u32>, usize)>,
    missing: Vec<(String, u64)>,
    /// The device and the stream of each slice that says what it did.
    work: Vec<(u32, u32)>,
}

fn facts(timeline: &Timeline) -> Facts {
    let first = |times: &mut dyn Iterator<Item = i64>| times.min().unwrap_or(0);
    let starts = &mut timeline.slices.iter().map(|slice| slice.start_ns);
    let begin = first(starts);
    let shown = timeline.slices.iter().map(|slice| {
        let category = slice.category.map(|at| &timeline.categories[at as usize]);
        let category = category.map_or_else(|| format!("{:?}", slice.kind), ToString::to_string);
        let parent = slice.parent.map(|at| &timeline.slices[at as usize]);
        let parent = parent.map_or("", |parent| name(timeline, parent));
        (
            category,
            name(timeline, slice).to_owned(),
            parent.to_owned(),
        )
    });
    let mut slices = BTreeMap::new();
    for shown in shown {
        *slices.entry(shown).or_default() += 1;
    }
    let steps = timeline.steps.iter().map(|step| {
        let (start, end) = (step.start_ns - begin, step.end_ns - begin);
        (step.number, start, end, step.slice.is_some())
    });
    let launches = timeline.launches.iter().map(|launch| {
        let start = launch.start_ns - begin;
        (start, launch.duration_ns, launch.slice.is_some())
    });
    // A track that has no slices is not in a file.
    let used: BTreeSet<u32> = timeline.slices.iter().map(|slice| slice.track).collect();
    let tracks = (0..).zip(&timeline.tracks);
    let tracks = tracks.filter(|(index, _)| used.contains(index));
    let counters = timeline.counters.iter().map(|counter| {
        let (name, unit) = (counter.name.clone(), counter.unit.clone());
        (name, unit, counter.device, counter.samples.len())
    });
    let work = timeline.slices.iter().filter_map(|slice| {
        let work = &timeline.work[slice.work? as usize];
        Some((work.device, work.stream))
    });
    Facts {
        slices,
        steps: steps.collect(),
        launches: launches.collect(),
        tracks: tracks
            .map(|(_, track)| {
                let name = track.name.clone();
                (track.process, track.rank, track.device, track.id, name)
            })
            .collect(),
        counters: counters.collect(),
        missing: timeline.missing.clone(),
        work: work.collect(),
    }
}

/// What each device did, and which functions kept it waiting, without their places.
fn account(timeline: &Timeline) -> Vec<String> {
    let devices = timeline.gpu_idle().devices.into_iter();
    let devices = devices.map(|mut device| {
        device.segments.clear();
        // Without one, the file has another.
        device.device_name.clear();
        for charge in device.charges.iter_mut().chain(&mut device.before_first) {
            charge.location.clear();
        }
        for function in &mut device.functions {
            function.location.clear();
        }
        format!("{device:#?}")
    });
    devices.collect()
}

#[track_caller]
fn assert_kept(timeline: &Timeline) -> String {
    let (again, text) = written(timeline);
    let tables = [timeline, &again].map(|line| line.key_averages().to_json());
    assert_eq!(tables[0], tables[1], "{text}");
    assert_eq!(facts(timeline), facts(&again), "{text}");
    assert_eq!(account(timeline), account(&again), "{text}");
    text
}

/// A step with an annotation, an operator inside one of its name, launches, and work on streams.
fn torch() -> String {
    let events = [
        complete(
            "user_annotation",
            "ProfilerStep#4",
            (0.0, 1000.0),
            r#""External id": 1"#,
        ),
        complete(
            "user_annotation",
            "## forward ##",
            (10.0, 500.0),
            r#""External id": 2"#,
        ),
        complete(
            "cpu_op",
            "aten::to",
            (20.0, 100.0),
            r#""External id": 3, "Input Dims": [[32, 64], []]"#,
        ),
        complete("cpu_op", "aten::to", (20.0, 100.0), r#""External id": 4"#),
        complete("python_function", "a.py(3): f", (40.0, 70.0), ""),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (50.0, 10.0),
            r#""External id": 4, "correlation": 7"#,
        ),
        complete(
            "cuda_runtime",
            "cudaDeviceSynchronize",
            (130.0, 20.0),
            r#""correlation": 8"#,
        ),
        on_track(
            "kernel",
            "gemm",
            (0, 0),
            (200.0, 50.5),
            r#""External id": 4, "correlation": 7, "device": 0, "stream": 0, "context": 1, "grid": [4, 1, 1],
               "block": [32, 1, 1], "registers per thread": 12, "shared memory": 128"#,
        ),
        on_track(
            "kernel",
            "launched before",
            (0, 20),
            (5.0, 3.0),
            r#""correlation": 99, "stream": 20"#,
        ),
        on_track(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            (0, 20),
            (300.0, 1.5),
            r#""External id": 3, "correlation": 98, "stream": 20, "bytes": 4096"#,
        ),
        on_track(
            "gpu_user_annotation",
            "## forward ##",
            (0, 0),
            (190.0, 80.0),
            r#""External id": 2"#,
        ),
        on_track(
            "gpu_user_annotation",
            "ProfilerStep#4",
            (0, 0),
            (180.0, 100.0),
            "",
        ),
        r#"{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python3"}}"#
            .to_owned(),
        r#"{"ph": "C", "name": "GPU 0 power (W)", "pid": 1, "ts": 3, "args": {"W": 71.5}}"#
            .to_owned(),
    ];
    events.join(",")
}

#[test]
fn a_trace_of_pytorch_is_kept() {
    let text = assert_kept(&read(&torch()));
    assert_eq!(text.matches(r#""name":"ProfilerStep#4""#).count(), 1);
    assert_eq!(
        text.matches(r#""cat":"cuda_runtime","name":"cudaLaunchKernel""#)
            .count(),
        1,
        "each launch once"
    );
    for category in [
        "cpu_op",
        "user_annotation",
        "python_function",
        "cuda_runtime",
        "gpu_memcpy",
    ] {
        assert!(
            text.contains(&format!(r#""cat":"{category}""#)),
            "{category}"
        );
    }
}

#[test]
fn the_rank_of_a_trace_is_kept() {
    let whole = format!(
        r#"{{"distributedInfo": {{"rank": 3}}, "deviceProperties": [{{"id": 0, "name": "H100"}}],
            "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [{}]}}"#,
        torch()
    );
    let timeline = of_text(&whole);
    let text = assert_kept(&timeline);
    assert!(text.contains(r#""rank": 3"#));
    let (again, _) = written(&timeline);
    assert_eq!(again.start_unix_ns, timeline.start_unix_ns);
    let device = again
        .tracks
        .iter()
        .find(|track| track.kind == TrackKind::GpuStream);
    assert_eq!(device.expect("a stream").device_name, "H100");
}

/// A trace of a window, with these frames as a stack.
fn window(frames: &str) -> String {
    let text = |events: &str| {
        format!(
            r#"{{"deviceProperties": [{{"id": 0, "name": "A100", "totalGlobalMem": 4096, "computeMajor": 8, "computeMinor": 6,
                "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 1536, "regsPerBlock": 65536,
                "regsPerMultiprocessor": 65537, "warpSize": 32, "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 101376,
                "sharedMemPerMultiprocessor": 102400, "numSms": 84, "maxBlocksPerMultiprocessor": 16,
                "reservedSharedMemPerBlock": 1024}}, {{"id": 1, "name": "T4", "numSms": 40}}],
            "distributedInfo": {{"rank": 3, "world_size": 8}}, "traceName": "x",
            "profiler": {{"name": "profiler-runtime", "kernels": true, "step_num": 5, "cycle": 2, "missing": [["lost", 7]]}},
            "run": "first", "metadata.traceEvents": "[]", "traceEvents": [{events}]}}"#
        )
    };
    let memory = r#""CPU Mem": -3, "CPU Mem Peak": 9, "CPU Mem Allocated": 12, "CPU Mem In Use": 90, "Self CPU Mem": -2,
        "CUDA Mem": 4, "CUDA Mem In Use": 44, "CUDA Mem Reserved": 444, "allocated bytes": 11, "CUDA bytes": 1"#;
    let stacks =
        format!(r#""Call stack": "{frames}", "Native stack": "0: f", "no CUDA time": "ring full""#);
    let events = [
        complete(
            "cpu_op",
            "f",
            (0.0, 100.0),
            &format!(r#""External id": 1, {memory}, {stacks}"#),
        ),
        complete(
            "cpu_op",
            "g",
            (200.0, 9.0),
            r#""External id": 2, "cuda_ns": 500, "cuda_self_ns": 400, "cuda_device": 0, "cuda_stream": 7, "cuda_after_ns": 30,
                "uncertainty_ns": 60, "moved_ns": 8"#,
        ),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (1.0, 2.0),
            r#""External id": 1, "correlation": 100001, "correlation of CUPTI": 4, "counted": false"#,
        ),
        on_track(
            "gpu_memcpy",
            "Memcpy PtoP (Device -> Device)",
            (0, 7),
            (110.0, 5.0),
            r#""External id": 1, "correlation": 9, "device": 0, "stream": 7, "context": 1, "bytes": 64, "fromDevice": 0,
                "toDevice": 1, "stream of CUPTI": 13"#,
        ),
        on_track(
            "user_annotation",
            "ProfilerStep#5",
            (1, 99),
            (0.0, 210.0),
            r#""ns": 210000, "thread": 1"#,
        ),
        r#"{"ph": "i", "cat": "replay", "name": "f", "pid": 1, "tid": 98, "ts": 90,
            "args": {"ns": 2000, "self_ns": 1500, "cuda_device": 0, "cuda_stream": 7}}"#
            .to_owned(),
        on_track(
            "cuda_sync",
            "Context Sync",
            (1, 9),
            (20.0, 15.0),
            r#""device": 1, "context": 2, "ordinal": 1, "rank of process": 3"#,
        ),
        r#"{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "(GPU 1)", "ordinal": 1}}"#
            .to_owned(),
        on_track(
            "gpu_user_annotation",
            "f",
            (0, 7),
            (10.0, 40.0),
            r#""External id": 1, "self_ns": 40000, "uncertainty_ns": 700, "moved_ns": -900"#,
        ),
        on_track(
            "cuda_sync",
            "Stream Sync",
            (0, 9),
            (20.0, 15.0),
            r#""device": 0, "context": 1, "waits for stream": 7, "ordinal": 0, "rank of process": 3"#,
        ),
    ];
    text(&events.join(","))
}

#[test]
fn what_only_windows_say_is_kept() {
    let frames = "a.rs(1): f;".repeat(500);
    let line = of_text(&window(&frames));
    let [device, other] = &line.devices[..] else {
        panic!("two devices: {:?}", line.devices)
    };
    assert_eq!((other.ordinal, other.properties.multiprocessors), (1, 40));
    assert_eq!(device.properties.compute, (8, 6));
    assert_eq!(device.properties.blocks_of_multiprocessor, 16);
    assert_eq!((line.waits.len(), line.details.len()), (2, 1));
    let stack = line.details[0].call_stack.as_deref();
    assert_eq!(stack, Some(&*frames));
    let (again, text) = written(&line);
    assert!(text.contains("(GPU 1)"), "a device that only waits use");
    assert_eq!(line.launches.len(), 1, "without work");
    assert_eq!(facts(&line), facts(&again), "{text}");
    assert_eq!(whole(&line), whole(&again));
    let GpuWorkKind::Memcpy(copy) = line.work[0].kind else {
        panic!("a copy: {:?}", line.work)
    };
    assert_eq!((copy.peer, line.work[0].stream), (Some(1), 13));
    let named = |track: Option<u32>| track.map(|track| line.tracks[track as usize].name.as_str());
    assert_eq!(named(line.steps[0].track), Some("thread 1"));
    assert_eq!(named(line.replays[0].track), Some("stream 7"));
    assert_eq!(line.metadata[1].0, "traceEvents");
    assert_eq!(line.metadata.len(), 2, "{:?}", line.metadata);
    let head = (line.world_size, line.has_kernels, line.step_num, line.cycle);
    assert_eq!(head, (Some(8), true, Some(5), Some(2)));
    let gpu = line.slices.iter();
    let gpu = gpu.filter(|slice| slice.kind == SliceKind::GpuScope);
    let gpu: Vec<_> = gpu
        .map(|slice| {
            let moved = (slice.uncertainty_ns, slice.moved_ns);
            (slice.start_ns, slice.measured_ns, slice.self_ns, moved)
        })
        .collect();
    let expected = [
        (10_000, None, 40_000, (Some(700), Some(-900))),
        (200_030, Some(500), 400, (Some(60), Some(8))),
    ];
    assert_eq!(gpu, expected);
    let memory = line
        .key_averages()
        .row("f")
        .and_then(|row| row.memory)
        .expect("memory");
    assert_eq!((memory.cpu_net, memory.self_cpu_net), (-3, -2));
    assert_eq!(
        again.key_averages().row("f").and_then(|row| row.memory),
        Some(memory)
    );
}

/// Spans of any categories on a few tracks, which nest, follow or cross each other.
fn events() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "cpu_op",
        "user_annotation",
        "python_function",
        "cuda_runtime",
        "cuda_driver",
        "odd \\\" category",
    ]);
    let device = prop::sample::select(vec![
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        "gpu_user_annotation",
    ]);
    let names = prop::sample::select(vec![
        "a",
        "b",
        "ProfilerStep#2",
        "ProfilerStep",
        "cudaLaunchKernel",
    ]);
    let times = (0..60_u32, 0..40_u32, prop::bool::ANY);
    let event = (
        host,
        device,
        names,
        times,
        0..4_u32,
        (0..6_u32, 0..5_u32, prop::bool::ANY),
    );
    let event = event.prop_map(
        |(host, device, name, (start, length, is_fine), track, (id, correlation, is_on_gpu))| {
            let fine = if is_fine { 0.123 } else { 0.0 };
            let times = (f64::from(start) + fine, f64::from(length) + fine);
            let args = format!(r#""External id": {id}, "correlation": {correlation}"#);
            if is_on_gpu {
                let name = match device {
                    "gpu_memcpy" => "Memcpy HtoD (Pageable -> Device)",
                    "gpu_memset" => "Memset (Device)",
                    _ => name,
                };
                let args = format!(r#"{args}, "device": 0, "stream": {track}, "bytes": 8"#);
                on_track(device, name, (0, track), times, &args)
            } else {
                on_track(host, name, (1 + track % 2, track), times, &args)
            }
        },
    );
    prop::collection::vec(event, 0..14).prop_map(|events| events.join(","))
}

proptest! {
    #[test]
    fn any_trace_is_kept(events in events()) {
        let timeline = read(&events);
        // Spans that cross others are put beside them by what the reader knows first; what it has made nests.
        let (once, _) = written(&timeline);
        let tables = [&timeline, &once].map(|line| line.key_averages().to_json());
        prop_assert_eq!(&tables[0], &tables[1], "{}", events);
        prop_assert_eq!(facts(&timeline), facts(&once), "{}", events);
    }
}

#[test]
fn parents_in_a_circle_are_none() {
    let mut events = vec![
        complete(
            "cuda_runtime",
            "l",
            (1.0, 1.0),
            r#""External id": 5, "id": 5, "parent": 5, "correlation": 7"#,
        ),
        complete(
            "cpu_op",
            "a",
            (2.0, 9.0),
            r#""External id": 6, "parent": 8, "counted": false"#,
        ),
        complete(
            "cpu_op",
            "b",
            (3.0, 1.0),
            r#""External id": 8, "parent": 6, "counted": false"#,
        ),
        complete(
            "cpu_op",
            "inside",
            (4.0, 1.0),
            r#""External id": 9, "parent": 8"#,
        ),
    ];
    events.push(on_track(
        "kernel",
        "k",
        (0, 7),
        (3.0, 1.0),
        r#""correlation": 7"#,
    ));
    for writer in ["profiler-runtime", "another"] {
        let text = format!(
            r#"{{"profiler": {{"name": "{writer}"}}, "traceEvents": [{}]}}"#,
            events.join(",")
        );
        let timeline = of_text(&text);
        assert!(
            timeline
                .slices
                .iter()
                .any(|slice| name(&timeline, slice) == "k")
        );
    }
}

#[test]
fn names_of_arguments_mean_nothing_in_files_of_other_programs() {
    let args = r#""External id": 2, "parent": 0, "poll": true, "counted": false, "stand-in": true, "ns": 1900,
        "location": "here", "self_ns": 5, "future": true, "panicked": true, "full name": "another", "cuda_ns": 3,
        "cuda_device": 0, "cuda_stream": 7"#;
    let events = [
        complete("x", "outer", (0.0, 10.0), r#""External id": 1"#),
        complete("x", "inner", (1.0, 1.0), args),
        r#"{"ph": "i", "cat": "replay", "name": "r", "pid": 1, "tid": 1, "ts": 5}"#.to_owned(),
    ];
    let timeline = read(&events.join(","));
    assert_eq!((timeline.slices.len(), timeline.replays.len()), (2, 0));
    let inner = &timeline.slices[1];
    assert_eq!((inner.self_ns, inner.ending), (1000, SliceEnding::Returned));
    assert_eq!(name(&timeline, inner), "inner");
    assert_eq!((inner.duration_ns, inner.parent), (1000, Some(0)));
    assert_eq!(inner.kind, SliceKind::Call);
    assert_eq!(&*timeline.names[inner.name as usize].location, "");
}
