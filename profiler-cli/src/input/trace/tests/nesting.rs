//! Nesting on threads.

use profiler_report::TrackKind;

use super::{complete, of_text, on_track, own, read, tree};

#[test]
fn calls_nest_by_their_times_whatever_their_order_is() {
    let events = [
        complete("cpu_op", "leaf", (20.0, 5.0), ""),
        complete("python_function", "a.py(3): outer", (10.0, 100.0), ""),
        complete("cpu_op", "next", (30.0, 10.0), ""),
        complete("user_annotation", "middle", (20.0, 20.0), ""),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("a.py(3): outer", "-", 80.0),
            ("middle", "a.py(3): outer", 5.0),
            ("leaf", "middle", 5.0),
            ("next", "middle", 10.0),
        ]
    );
    let outer = &timeline.names[timeline.slices[0].name as usize];
    assert_eq!(&*outer.location, "a.py:3");
    assert_eq!(
        (timeline.slices[0].start_ns, timeline.duration_ns),
        (0, 100_000)
    );
}

#[test]
fn of_equal_spans_the_one_with_the_smaller_id_is_around_the_other() {
    let events = [
        complete("cpu_op", "inner", (0.0, 5.0), r#""External id": 2"#),
        complete("cpu_op", "outer", (0.0, 5.0), r#""External id": 1"#),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [("outer", "-", 0.0), ("inner", "outer", 5.0)]
    );
}

#[test]
fn a_span_that_crosses_another_gets_a_track_beside() {
    let events = [
        complete("", "outer", (0.0, 100.0), ""),
        complete("", "first", (10.0, 20.0), ""),
        complete("", "crosses", (20.0, 40.0), ""),
        complete("", "inside first", (22.0, 1.0), ""),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("outer", "-", 80.0),
            ("first", "outer", 19.0),
            ("crosses", "outer", 40.0),
            ("inside first", "first", 1.0),
        ]
    );
    let tracks: Vec<_> = timeline.slices.iter().map(|slice| slice.track).collect();
    assert_eq!(tracks, [0, 0, 1, 0]);
    assert_eq!(timeline.tracks[1].name, "thread 1 (beside 1)");
    assert!(
        timeline
            .tracks
            .iter()
            .all(|track| track.kind == TrackKind::HostThread)
    );
}

#[test]
fn calls_and_launches_that_overlap_more_than_64_others_are_counted() {
    let crossing = |first: i32, category: &'static str, name: &'static str, args: &'static str| {
        let starts = (first..first + 33).map(|number| f64::from(2 * number));
        starts.map(move |start| complete(category, name, (start, 1000.0), args))
    };
    let calls = crossing(0, "cpu_op", "f", r#""External id": 1"#);
    let args = r#""correlation": 7, "counted": false"#;
    let launches = crossing(33, "cuda_runtime", "cudaLaunchKernel", args);
    let events: Vec<String> = calls.chain(launches).collect();
    for (events, expected) in [(&events[..65], (33, 32)), (&events[..], (33, 32))] {
        let line = of_text(&own(events));
        assert_eq!((line.slices.len(), line.launches.len()), expected);
        let left_out = events.len() - line.slices.len() - line.launches.len();
        let missing: u64 = line.missing.iter().map(|(_, count)| *count).sum();
        assert_eq!(missing, left_out as u64, "{:?}", line.missing);
    }
}

#[test]
fn an_end_that_was_rounded_past_the_end_around_it_is_inside() {
    let events = [
        complete("", "outer", (0.0, 10.0), ""),
        complete("", "inner", (5.0, 5.9), ""),
        complete("", "next", (10.0, 1.0), ""),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("outer", "-", 5.0),
            ("inner", "outer", 5.0),
            ("next", "-", 1.0)
        ]
    );
}

#[test]
fn begins_and_ends_are_paired_on_their_threads() {
    let half = |phase: &str, name: &str, thread: u32, at: u32| {
        format!(r#"{{"ph": "{phase}", "name": "{name}", "pid": 1, "tid": {thread}, "ts": {at}}}"#)
    };
    let events = [
        half("E", "", 1, 30),
        half("B", "outer", 1, 0),
        half("B", "inner", 1, 10),
        half("E", "", 1, 20),
        half("B", "elsewhere", 2, 5),
        half("E", "", 3, 7),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [("outer", "-", 20.0), ("inner", "outer", 10.0)]
    );
    let missing: Vec<_> = timeline
        .missing
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    assert_eq!(
        missing,
        [
            "1 begins (of the phase B) have no end",
            "1 ends (of the phase E) have no begin",
        ]
    );
}

#[test]
fn threads_keep_their_names_and_ids() {
    let events = [
        r#"{"ph": "M", "name": "thread_name", "pid": 9, "tid": 42, "args": {"name": "worker"}}"#
            .to_owned(),
        r#"{"ph": "M", "name": "process_name", "pid": 9, "args": {"name": "app"}}"#.to_owned(),
        on_track("", "f", (9, 42), (0.0, 1.0), ""),
        on_track("", "g", (9, 43), (0.0, 1.0), ""),
    ];
    let timeline = read(&events.join(","));
    let tracks: Vec<_> = timeline
        .tracks
        .iter()
        .map(|track| {
            (
                track.name.as_str(),
                track.process_name.as_str(),
                track.process,
                track.id,
            )
        })
        .collect();
    assert_eq!(
        tracks,
        [("worker", "app", 9, 42), ("thread 43", "app", 9, 43)]
    );
}

#[test]
fn polls_belong_to_their_future_and_the_future_to_its_caller() {
    let events = [
        complete("cpu_op", "run", (0.0, 100.0), r#""External id": 1"#),
        complete(
            "user_annotation",
            "load",
            (10.0, 10.0),
            r#""parent": 2, "poll": true"#,
        ),
        complete("cpu_op", "decode", (12.0, 3.0), r#""External id": 3"#),
        complete(
            "user_annotation",
            "load",
            (50.0, 5.0),
            r#""parent": 2, "poll": true"#,
        ),
        on_track(
            "cpu_op",
            "load",
            (1, 1000),
            (10.0, 45.0),
            r#""External id": 2, "parent": 1, "future": true, "self_ns": 12000"#,
        ),
    ];
    let timeline = of_text(&own(&events));
    assert_eq!(
        tree(&timeline),
        [
            ("run", "-", 85.0),
            ("load", "run", 12.0),
            ("load", "load", 7.0),
            ("decode", "load", 3.0),
            ("load", "load", 5.0),
        ]
    );
    let row = timeline.key_averages();
    let row = row.row("load").expect("it was called");
    assert_eq!((row.calls, row.futures, row.polled_ns), (1, 1, 15_000.0));
    assert_eq!(
        row.cpu.map(|cpu| (cpu.total_ns, cpu.self_ns)),
        Some((45_000.0, 12_000.0))
    );
}

#[test]
fn calls_on_the_track_of_a_future_nest() {
    let timeline = of_text(&own(&[
        complete(
            "cpu_op",
            "load",
            (0.0, 50.0),
            r#""External id": 1, "future": true"#,
        ),
        complete("cpu_op", "outer", (10.0, 80.0), r#""External id": 2"#),
        complete("cpu_op", "inner", (20.0, 10.0), r#""External id": 3"#),
    ]));
    assert_eq!(
        tree(&timeline),
        [
            ("load", "-", 50.0),
            ("outer", "-", 70.0),
            ("inner", "outer", 10.0)
        ]
    );
}

#[test]
fn a_parent_and_a_self_time_that_the_file_names_take_precedence() {
    let text = own(&[
        complete(
            "cpu_op",
            "train",
            (0.0, 100.0),
            r#""External id": 1, "self_ns": 40000"#,
        ),
        complete("cpu_op", "step", (10.0, 50.0), r#""External id": 2"#),
        on_track(
            "cpu_op",
            "load",
            (1, 2),
            (20.0, 60.0),
            r#""External id": 3, "parent": 1"#,
        ),
        complete(
            "cpu_op",
            "alone",
            (20.0, 10.0),
            r#""External id": 4, "parent": 0"#,
        ),
    ]);
    let line = of_text(&text);
    assert_eq!(
        tree(&line),
        [
            ("train", "-", 40.0),
            ("step", "train", 40.0),
            ("load", "train", 60.0),
            ("alone", "-", 10.0),
        ]
    );
}

#[test]
fn the_time_in_calls_of_cuda_is_that_of_the_function_around_and_markers_are_no_calls() {
    let text = own(&[
        complete("cpu_op", "f", (0.0, 100.0), r#""External id": 1"#),
        complete(
            "cuda_runtime",
            "cudaLaunchKernel",
            (10.0, 50.0),
            r#""correlation": 7, "counted": false"#,
        ),
        complete("cpu_op", "callback", (20.0, 10.0), r#""External id": 2"#),
        complete("python", "[recursion]", (0.0, 0.0), ""),
        on_track("kernel", "k", (0, 7), (70.0, 10.0), r#""correlation": 7"#),
    ]);
    let line = of_text(&text);
    assert_eq!(
        tree(&line),
        [("f", "-", 90.0), ("callback", "f", 10.0), ("k", "f", 10.0)]
    );
}

#[test]
fn gpu_times_beside_their_stream_are_times_of_the_stream() {
    let gpu = |name: &str, tid, (start, length), args: &str| {
        on_track("gpu_user_annotation", name, (0, tid), (start, length), args)
    };
    let text = own(&[
        complete("cpu_op", "f", (0.0, 10.0), r#""External id": 1"#),
        complete(
            "cpu_op",
            "g",
            (20.0, 10.0),
            r#""External id": 2, "cuda_ns": 5000, "cuda_self_ns": 4000,
            "cuda_device": 0, "cuda_stream": 7"#,
        ),
        gpu(
            "f",
            8,
            (10.0, 40.0),
            r#""External id": 1, "ns": 41000, "self_ns": 39000"#,
        ),
        on_track(
            "kernel",
            "k",
            (0, 7),
            (12.0, 20.0),
            r#""External id": 1, "correlation": 3"#,
        ),
        r#"{"ph": "M", "name": "thread_name", "pid": 0, "tid": 8, "ts": 0,
            "args": {"name": "stream 7, overlapping 1", "stream": 7}}"#
            .to_owned(),
    ]);
    let line = of_text(&text);
    assert!(
        line.tracks[1..].iter().all(|track| track.id == 7),
        "{:?}",
        line.tracks
    );
    let averages = line.key_averages();
    let cuda = |name: &str| {
        let row = averages.row(name);
        row.and_then(|row| row.cuda.as_ref())
            .map(|cuda| (cuda.total_ns, cuda.self_ns))
    };
    assert_eq!(cuda("f"), Some((41_000.0, 39_000.0)));
    assert_eq!(cuda("g"), Some((5_000.0, 4_000.0)));
    assert_eq!(cuda("k"), None, "it is in the time of the function");
}
