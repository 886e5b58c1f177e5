use serde_json::Value;

use super::super::FREE;
use super::*;
use crate::{
    Counter, GpuWork, GpuWorkKind, KernelLaunch, Launch, SliceName, Step, Track, TrackKind,
};

fn line() -> Timeline {
    let name = |text: &str| SliceName {
        text: text.into(),
        ..SliceName::default()
    };
    let track = |kind, rank, name: &str| Track {
        kind,
        rank: Some(rank),
        process: 700,
        process_name: format!("rank {rank}"),
        name: name.to_owned(),
        id: 7,
        ..Track::default()
    };
    let slice = |track, name, start_ns, kind, parent| Slice {
        track,
        name,
        start_ns,
        duration_ns: 1_500,
        self_ns: 1_500,
        kind,
        parent,
        ..Slice::default()
    };
    Timeline {
        start_unix_ns: 1_700_000_000_000_000_001,
        names: vec![
            name("a \"quoted\" name"),
            name("kernel"),
            name("cuLaunchKernel"),
            name("ProfilerStep*"),
        ],
        tracks: vec![
            track(TrackKind::HostThread, 0, "main"),
            track(TrackKind::GpuStream, 0, "stream 7"),
            track(TrackKind::HostThread, 1, "main"),
            track(TrackKind::GpuStream, 1, "stream 7"),
        ],
        slices: vec![
            slice(0, 0, 1_234_567, SliceKind::Call, None),
            Slice {
                category: Some(0),
                ..slice(2, 3, 1_000, SliceKind::Call, None)
            },
            Slice {
                work: Some(0),
                launch: Some(0),
                ..slice(1, 1, 1_235_000, SliceKind::GpuWork, Some(0))
            },
            slice(3, 1, 1_235_000, SliceKind::GpuWork, None),
        ],
        categories: vec!["user_annotation".into()],
        work: vec![GpuWork {
            kind: GpuWorkKind::Kernel(KernelLaunch {
                grid: [4, 2, 1],
                ..KernelLaunch::default()
            }),
            ..GpuWork::default()
        }],
        launches: vec![Launch {
            name: 2,
            start_ns: 1_234_600,
            duration_ns: 300,
            parent: Some(0),
            ..Launch::default()
        }],
        steps: vec![Step {
            number: 4,
            start_ns: 1_000,
            end_ns: 2_500,
            track: None,
            slice: Some(1),
            non_exhaustive: (),
        }],
        counters: vec![Counter {
            name: "memory".to_owned(),
            unit: "bytes".to_owned(),
            samples: vec![(5, 1.5), (9, f64::NAN)],
            ..Counter::default()
        }],
        ..Timeline::default()
    }
}

fn whole() -> Value {
    let text = write(&line(), Vec::new(), "cuda_runtime").expect("it is written");
    serde_json::from_slice(&text).expect("JSON")
}

fn of_phase(phase: &str) -> Vec<Value> {
    let events = whole()["traceEvents"].take();
    let events = events.as_array().expect("a list").iter();
    let of_phase = events.filter(|event| event["ph"] == phase);
    of_phase.cloned().collect()
}

#[test]
fn each_slice_has_its_category_its_name_and_its_time() {
    let base = whole()["baseTimeNanoseconds"].as_i64().expect("a number");
    let at = |ns: i64| -> Value {
        let offset = line().start_unix_ns - base;
        ((ns + offset) as f64 / 1000.0).into()
    };
    let shown: Vec<_> = of_phase("X")
        .into_iter()
        .map(|mut event| ["cat", "name", "ts"].map(|key| event[key].take()))
        .collect();
    let launch = "launch that was not recorded";
    assert_eq!(
        shown,
        [
            ["cpu_op".into(), "a \"quoted\" name".into(), at(1_234_567)],
            ["user_annotation".into(), "ProfilerStep#4".into(), at(1_000)],
            [
                "cuda_runtime".into(),
                "cudaLaunchKernel".into(),
                at(1_234_600)
            ],
            ["kernel".into(), "kernel".into(), at(1_235_000)],
            ["cuda_runtime".into(), launch.into(), at(1_235_000)],
            ["kernel".into(), "kernel".into(), at(1_235_000)],
            ["gpu_idle".into(), "before the first work".into(), at(0)],
            ["gpu_idle".into(), "not recorded".into(), at(0)],
        ]
    );
}

#[test]
fn ranks_have_processes_devices_and_correlations_apart() {
    let slices = of_phase("X");
    let places: Vec<_> = slices
        .iter()
        .map(|slice| slice["pid"].as_u64().expect("a number"))
        .collect();
    // Both ranks have the process id 700, and a device 0.
    let other = FREE + 1;
    assert_eq!(places, [700, other, 700, 0, other, 1, 0, 1]);
    let kernels = slices.iter().filter(|slice| slice["cat"] == "kernel");
    let correlations: Vec<_> = kernels
        .map(|kernel| kernel["args"]["correlation"].as_u64())
        .collect();
    assert_ne!(correlations[0], correlations[1]);
    assert!(
        whole().get("distributedInfo").is_none(),
        "it is of two ranks"
    );
}

#[test]
fn the_last_device_and_an_unknown_one_are_apart() {
    let mut timeline = line();
    timeline.tracks.truncate(2);
    timeline.slices.truncate(1);
    for device in [Some(63), None] {
        timeline.tracks.push(Track {
            kind: TrackKind::GpuStream,
            device,
            ..timeline.tracks[0].clone()
        });
    }
    timeline.tracks.remove(1);
    let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
    let whole: Value = serde_json::from_slice(&text).expect("JSON");
    let events = whole["traceEvents"].as_array().expect("a list").iter();
    let streams = events.filter(|event| event["args"].get("host").is_some());
    let devices: Vec<_> = streams.map(|stream| stream["pid"].as_u64()).collect();
    assert_eq!(devices, [Some(0), Some(1)]);
}

#[test]
fn no_two_pairs_of_metadata_have_one_key() {
    let mut timeline = line();
    for key in ["profiler", "metadata.profiler", "rows", "run"] {
        timeline.metadata.push((key.to_owned(), key.to_owned()));
    }
    let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
    let text = String::from_utf8(text).expect("text");
    for key in [
        "metadata.profiler",
        "metadata.metadata.profiler",
        "metadata.rows",
        "run",
    ] {
        assert_eq!(text.matches(&format!("\n\"{key}\":")).count(), 1, "{key}");
    }
}

#[test]
fn an_arrow_leads_from_the_launch_to_its_work() {
    let (starts, ends) = (of_phase("s"), of_phase("f"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!(starts[0]["id"], ends[0]["id"]);
    assert_eq!(
        (&starts[0]["pid"], &ends[0]["pid"]),
        (&700.into(), &0.into())
    );
}

#[test]
fn counters_have_only_finite_values() {
    let counters = of_phase("C");
    assert_eq!(counters.len(), 1);
    assert_eq!(counters[0]["name"], "memory (bytes)");
    assert_eq!(counters[0]["args"]["bytes"], 1.5);
}

#[test]
fn the_most_extreme_times_are_written() {
    let mut timeline = line();
    for (at, times) in [i64::MIN, i64::MAX, 0, -1].into_iter().enumerate() {
        let slice = &mut timeline.slices[at];
        (slice.start_ns, slice.duration_ns, slice.self_ns) = (times, i64::MAX, i64::MIN);
        let launch = &mut timeline.launches[0];
        (launch.start_ns, launch.duration_ns) = (times, i64::MIN);
        let step = &mut timeline.steps[0];
        (step.start_ns, step.end_ns, step.slice) = (i64::MIN, i64::MAX, None);
        for start_unix_ns in [i64::MIN, 0, i64::MAX] {
            timeline.start_unix_ns = start_unix_ns;
            let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
            let _: Value = serde_json::from_slice(&text).expect("JSON");
        }
    }
}

#[test]
fn texts_of_any_kind_leave_the_file_valid() {
    for shapes in [
        "[[8, -1], []]",
        "[1,,2]",
        "[[8]",
        "[007]",
        "]",
        "[1] ",
        "a\"b",
        "",
    ] {
        let mut timeline = line();
        timeline.shapes = vec![shapes.to_owned()];
        timeline.slices[0].shapes = Some(0);
        timeline.counters[0].unit = "\"".to_owned();
        timeline.categories = vec!["\"}".into()];
        timeline.slices[0].category = Some(0);
        let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
        let whole: Value = serde_json::from_slice(&text).expect("JSON");
        let events = whole["traceEvents"].as_array().expect("a list");
        let mut args = events.iter().map(|event| &event["args"]);
        let is_list = shapes.starts_with("[[8, -1]");
        let key = if is_list { "Input Dims" } else { "shapes" };
        assert!(args.any(|args| args.get(key).is_some()), "{shapes}");
    }
}

#[test]
fn a_launch_or_a_step_whose_slice_is_on_no_thread_is_written_itself() {
    for slice in [u32::MAX, 2] {
        let mut timeline = line();
        timeline.launches[0].slice = Some(slice);
        timeline.steps[0].slice = Some(slice);
        let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
        let whole: Value = serde_json::from_slice(&text).expect("JSON");
        let events = whole["traceEvents"].as_array().expect("a list");
        for name in ["cudaLaunchKernel", "ProfilerStep#4"] {
            assert!(events.iter().any(|event| event["name"] == name), "{name}");
        }
    }
}

#[test]
fn a_step_that_is_a_slice_names_its_thread_if_that_is_of_its_process() {
    for (track, is_named) in [(2, true), (0, false), (u32::MAX, false)] {
        let mut timeline = line();
        timeline.steps[0].track = Some(track);
        let text = write(&timeline, Vec::new(), "cuda_runtime").expect("it is written");
        let whole: Value = serde_json::from_slice(&text).expect("JSON");
        let mut events = whole["traceEvents"].as_array().expect("a list").iter();
        let step = events.find(|event| event["name"] == "ProfilerStep#4");
        let step = step.expect("it is written");
        let thread = step["args"].get("thread");
        assert_eq!(thread, is_named.then_some(&step["tid"]), "{track}");
    }
}

/// Returns what the file says of names: the table, and the arguments of events that say it themselves.
fn about_names(timeline: &Timeline) -> (Value, Vec<[Value; 3]>) {
    let file = write(timeline, Vec::new(), crate::chrome::LAUNCHES).expect("memory");
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    let events = file["traceEvents"].as_array().expect("events").iter();
    let said = events.map(|event| {
        let args = &event["args"];
        [&event["name"], &args["full name"], &args["location"]].map(Value::clone)
    });
    let said = said.filter(|[_, full, location]| !full.is_null() || !location.is_null());
    (file["nameTable"].clone(), said.collect())
}

#[test]
fn the_head_says_once_what_events_of_a_name_have_in_common() {
    let name = |text: &str, short: &str, location: &str| SliceName {
        text: text.into(),
        short: short.into(),
        location: location.into(),
        ..SliceName::default()
    };
    let mut timeline = Timeline {
        names: vec![
            name("a::load", "load", "a.rs:1"),
            name("plain", "", ""),
            name("a::ProfilerStep", "", ""),
            name("[recursion]", "", "a.rs:2"),
        ],
        tracks: vec![Track::default()],
        ..Timeline::default()
    };
    timeline.slices = (0..)
        .zip(&timeline.names)
        .map(|(name, _)| Slice {
            name,
            start_ns: i64::from(name) * 10,
            duration_ns: 10,
            self_ns: 10,
            ..Slice::default()
        })
        .collect();
    let (table, said) = about_names(&timeline);
    let expected = serde_json::json!({
        "load": ["a::load", "a.rs:1"],
        "a::Profiler Step": ["a::ProfilerStep", null],
    });
    assert_eq!(table, expected);
    // That name is also one of events that the profiler adds.
    let own = ["[recursion]".into(), Value::Null, "a.rs:2".into()];
    assert_eq!(said, std::slice::from_ref(&own));
    // Names that look alike are told apart by their events.
    timeline.names[1] = name("b::load", "load", "b.rs:1");
    let (table, said) = about_names(&timeline);
    assert_eq!(table["load"], Value::Null);
    let of = |of: [&str; 3]| of.map(Value::from);
    let [first, second] = [["load", "a::load", "a.rs:1"], ["load", "b::load", "b.rs:1"]];
    assert_eq!(said, [of(first), of(second), own]);
}
