//! Nesting on threads.

use proptest::prelude::*;

use profiler_report::{Slice, TrackKind};

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
fn a_span_that_crosses_another_closes_it_and_the_shorter_is_drawn_beside() {
    let events = [
        complete("", "outer", (0.0, 100.0), ""),
        complete("", "first", (10.0, 20.0), ""),
        complete("", "crosses", (20.0, 40.0), ""),
        complete("", "inside", (22.0, 1.0), ""),
        complete("", "last", (55.0, 10.0), ""),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("outer", "-", 30.0),
            ("first", "outer", 20.0),
            ("crosses", "outer", 39.0),
            ("inside", "crosses", 1.0),
            ("last", "outer", 10.0),
        ]
    );
    let beside =
        |slice: &Slice| timeline.tracks[slice.track as usize].name == "thread 1 (beside 1)";
    let beside: Vec<_> = timeline.slices.iter().map(beside).collect();
    assert_eq!(beside, [false, true, false, false, true]);
    assert!(
        timeline
            .tracks
            .iter()
            .all(|track| track.kind == TrackKind::HostThread)
    );
}

#[test]
fn an_annotation_that_begins_in_the_python_frame_of_its_enter_call_is_around_what_follows() {
    let python = |name: &str, times| complete("python_function", name, times, "");
    let events = [
        python("loop.py(3): forward", (0.0, 1000.0)),
        python("<built-in method _record_function_enter_new>", (10.0, 5.0)),
        complete("user_annotation", "step_a", (12.0, 888.0), ""),
        complete("cpu_op", "aten::mm", (100.0, 700.0), r#""External id": 2"#),
        python("<built-in method _record_function_exit>", (895.0, 10.0)),
    ];
    let timeline = read(&events.join(","));
    let forward = "loop.py(3): forward";
    assert_eq!(
        tree(&timeline),
        [
            (forward, "-", 97.0),
            ("<built-in method _record_function_enter_new>", forward, 5.0),
            ("step_a", forward, 188.0),
            ("aten::mm", "step_a", 700.0),
            ("<built-in method _record_function_exit>", forward, 10.0),
        ]
    );
}

/// The self times of a thread, the spans that are in no other, and the time that was cut off at 0, by the rule of
/// `_populate_cpu_children` in PyTorch's `torch/autograd/profiler_util.py`.
struct ByTorchsRule {
    self_ns: Vec<i64>,
    outermost: Vec<(i64, i64)>,
    cut_off_ns: i64,
}

impl ByTorchsRule {
    /// `spans` are in the order of their starts, longer ones first.
    fn of(spans: &[(i64, i64)]) -> Self {
        let mut self_ns: Vec<i64> = spans.iter().map(|(start, end)| end - start).collect();
        let mut outermost = Vec::new();
        let mut stack: Vec<usize> = Vec::new();
        for (index, (start, end)) in spans.iter().enumerate() {
            while let Some(parent) = stack.last() {
                let (_, parent_end) = spans[*parent];
                if *start >= parent_end || *end > parent_end {
                    stack.pop();
                } else {
                    self_ns[*parent] -= end - start;
                    break;
                }
            }
            if stack.is_empty() {
                outermost.push((*start, *end));
            }
            stack.push(index);
        }
        let cut_off_ns = self_ns.iter().map(|own| (-own).max(0)).sum();
        let self_ns = self_ns.into_iter().map(|own| own.max(0)).collect();
        Self {
            self_ns,
            outermost,
            cut_off_ns,
        }
    }
}

/// Returns the time in which any of the spans runs. They are in the order of their starts.
fn covered_ns(spans: &[(i64, i64)]) -> i64 {
    let mut until = i64::MIN;
    let mut covered = 0;
    for (start, end) in spans {
        covered += (end - until.max(*start)).max(0);
        until = until.max(*end);
    }
    covered
}

proptest! {
    #[test]
    fn self_times_are_those_of_pytorch_and_add_up_to_the_time_of_the_thread(
        lengths in prop::collection::btree_map(0..100_000_i64, 1..60_000_i64, 1..60),
    ) {
        // The time that is no multiple of three says that times are not rounded to it; ends that cross do so by more than a rounded
        // nanosecond. No two spans have the same start, for which both have rules of their own.
        let spans: Vec<(i64, i64)> = lengths.into_iter().map(|(start, length)| (3 * start, 3 * (start + length))).collect();
        let spans = [&[(-1, 0)], &spans[..]].concat();
        let microseconds = |ns: i64| ns as f64 / 1000.0;
        let events: Vec<String> = spans
            .iter()
            .map(|(start, end)| complete("cpu_op", "f", (microseconds(*start), microseconds(end - start)), ""))
            .collect();
        let timeline = read(&events.join(","));
        prop_assume!(timeline.missing.is_empty());
        let expected = ByTorchsRule::of(&spans);
        let self_ns: Vec<i64> = timeline.slices.iter().map(|slice| slice.self_ns).collect();
        prop_assert_eq!(&self_ns, &expected.self_ns);

        let outermost: i64 = expected.outermost.iter().map(|(start, end)| end - start).sum();
        let overlap = outermost - covered_ns(&expected.outermost);
        prop_assert_eq!(self_ns.iter().sum::<i64>(), covered_ns(&spans) + overlap + expected.cut_off_ns);
    }
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
        complete("", "inner", (5.0, 6.0), ""),
        complete("", "next", (10.0, 1.0), ""),
    ];
    let rounded = read(&events.join(","));
    assert_eq!(
        tree(&rounded),
        [
            ("outer", "-", 5.0),
            ("inner", "outer", 5.0),
            ("next", "-", 1.0)
        ]
    );
    let exact = complete("", "exact", (20.001, 1.0), "");
    let exact = read(&[&events[..], &[exact]].concat().join(","));
    assert_eq!(
        tree(&exact)[..3],
        [
            ("outer", "-", 10.0),
            ("inner", "-", 5.0),
            ("next", "inner", 1.0)
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
fn ends_and_begins_of_one_time_are_paired_by_their_names() {
    let half = |phase: &str, name: &str, at: u32| {
        format!(r#"{{"ph": "{phase}", "name": "{name}", "pid": 1, "tid": 1, "ts": {at}}}"#)
    };
    let events = [
        half("B", "outer", 0),
        half("E", "empty", 2),
        half("B", "empty", 2),
        half("B", "inner", 4),
        half("E", "outer", 10),
        half("E", "inner", 10),
        half("B", "a", 20),
        half("E", "b", 30),
        half("B", "c", 30),
        half("E", "c", 34),
    ];
    let timeline = read(&events.join(","));
    assert_eq!(
        tree(&timeline),
        [
            ("outer", "-", 4.0),
            ("empty", "outer", 0.0),
            ("inner", "outer", 6.0),
            ("a", "-", 10.0),
            ("c", "-", 4.0),
        ]
    );
    assert_eq!(timeline.missing, []);
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
