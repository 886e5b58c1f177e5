//! Files read by a reader that knows nothing of the writer.

mod property;
mod reader;

use std::collections::BTreeSet;

use self::reader::{Contents, read};
use super::*;
use crate::{
    Counter, GpuWork, GpuWorkKind, KernelGap, KernelLaunch, Launch, MemoryCopy, Replay, Slice,
    SliceEnding, SliceKind, SliceName, Step, Track, TrackKind,
};

fn written(timeline: &Timeline) -> Contents {
    read(&write_timeline(timeline, Vec::new()).expect("to memory"))
}

/// A time line of a thread, a stream, and futures.
fn empty() -> Timeline {
    let track = |kind, name: &str, id, device| Track {
        kind,
        name: name.to_owned(),
        process: 4711,
        process_name: "app".to_owned(),
        id,
        device,
        rank: Some(3),
        ..Track::default()
    };
    Timeline {
        start_unix_ns: 1_700_000_000_123_456_789,
        names: ["app::Model::forward", "load"]
            .map(|text| SliceName {
                text: text.into(),
                short: text.strip_prefix("app::").unwrap_or_default().into(),
                location: format!("src/{}.rs:17", text.len()).into(),
                non_exhaustive: (),
            })
            .into(),
        tracks: vec![
            track(TrackKind::HostThread, "main (4711)", 4711, None),
            track(TrackKind::GpuStream, "stream 7 (default)", 7, Some(0)),
            track(TrackKind::Futures, "futures 1", 0, None),
            track(TrackKind::HostThread, "thread 4712", 4712, None),
        ],
        ..Timeline::default()
    }
}

fn slice(track: u32, start_ns: i64, duration_ns: i64, parent: Option<u32>) -> Slice {
    Slice {
        track,
        start_ns,
        duration_ns,
        self_ns: duration_ns,
        parent,
        kind: match track {
            1 => SliceKind::GpuScope,
            2 => SliceKind::AsyncCall,
            _ => SliceKind::Call,
        },
        ..Slice::default()
    }
}

fn arrows(contents: &Contents) -> Vec<(i64, i64)> {
    let starts = |(from, to): &(usize, usize)| {
        let start = |index: &usize| contents.slices[*index].start % 1000;
        (start(from), start(to))
    };
    contents.arrows.iter().map(starts).collect()
}

#[test]
fn tracks_have_the_names_of_their_threads_and_streams() {
    let contents = written(&empty());
    let tracks: Vec<_> = contents.tracks.values().collect();
    let [process, main, device, stream, futures, other] = &tracks[..] else {
        panic!("six tracks: {tracks:#?}")
    };
    let labels = vec!["rank 3".to_owned()];
    assert_eq!(process.process, Some((4711, "app".to_owned(), labels)));
    assert_eq!(main.thread, Some((4711, 4711, "main".to_owned())));
    assert_eq!(other.thread, Some((4711, 4712, String::new())));
    assert_eq!((&*device.name, device.parent), ("GPU 0", Some(1)));
    assert_eq!(stream.name, "stream 7 (default)");
    assert_eq!(
        contents.tracks[&stream.parent.expect("the device")],
        **device
    );
    assert_eq!((&*futures.name, futures.parent), ("futures 1", Some(1)));
}

#[test]
fn processes_of_equal_ids_are_told_apart() {
    let mut timeline = empty();
    let mut elsewhere = timeline.tracks[0].clone();
    elsewhere.rank = Some(4);
    timeline.tracks.push(elsewhere);
    let contents = written(&timeline);
    let processes = contents
        .tracks
        .values()
        .filter_map(|track| track.process.clone());
    let processes: Vec<_> = processes.collect();
    let [first, second] = &processes[..] else {
        panic!("two processes: {processes:?}")
    };
    assert_ne!(first.0, second.0);
    assert_eq!(second.2, ["rank 4", "process 4711"]);
}

#[test]
fn slices_have_short_names_and_their_source() {
    let mut timeline = empty();
    timeline.slices = vec![slice(0, 10, 100, None), slice(1, 20, 50, Some(0))];
    timeline.slices[0].ending = SliceEnding::Panicked;
    timeline.slices[0].shapes = Some(0);
    timeline.slices[0].device_bytes = Some(-8);
    timeline.shapes = vec!["[[2, 3]]".to_owned()];
    let contents = written(&timeline);
    let [scope, gpu] = &contents.slices[..] else {
        panic!("two slices: {contents:#?}")
    };
    assert_eq!(
        (&*scope.name, &*scope.category),
        ("Model::forward", "scope")
    );
    assert_eq!(gpu.category, "gpu_scope");
    let source = ("src/19.rs".to_owned(), "app::Model::forward".to_owned(), 17);
    assert_eq!(scope.source.as_ref(), Some(&source));
    assert_eq!(gpu.source, scope.source);
    let arguments: Vec<_> = scope.arguments.iter().collect();
    let expected = [
        ("CUDA bytes", "-8"),
        ("panicked", "true"),
        ("shapes", "[[2, 3]]"),
    ];
    assert!(
        arguments
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .eq(expected),
        "{arguments:?}"
    );
    assert_eq!(scope.start, timeline.start_unix_ns + 10);
    assert_eq!(contents.arrows, [(0, 1)]);
}

#[test]
fn arrows_lead_to_work_and_to_children_elsewhere() {
    let mut timeline = empty();
    timeline.start_unix_ns = 0;
    timeline.slices = vec![
        slice(0, 100, 800, None),
        slice(0, 200, 100, Some(0)),
        slice(3, 250, 100, Some(1)),
        slice(2, 300, 500, Some(0)),
        // A poll of that future, and what it calls.
        slice(3, 400, 100, Some(3)),
        slice(3, 410, 20, Some(3)),
        slice(1, 220, 50, Some(1)),
        slice(1, 300, 50, Some(0)),
    ];
    timeline.slices[4].kind = SliceKind::FuturePoll;
    let found: BTreeSet<_> = arrows(&written(&timeline)).into_iter().collect();
    let expected = [(200, 220), (200, 250), (100, 300)];
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn no_arrow_leads_back_in_time() {
    let mut timeline = empty();
    timeline.slices = vec![
        slice(0, 100, 10, None),
        slice(1, 90, 10, Some(0)),
        slice(3, 100, 10, Some(0)),
    ];
    timeline.start_unix_ns = 0;
    assert_eq!(arrows(&written(&timeline)), [(100, 100)]);
}

#[test]
fn slices_that_cross_are_below_their_track() {
    let mut timeline = empty();
    timeline.slices = vec![
        slice(0, 0, 100, None),
        slice(0, 50, 100, None),
        slice(0, 60, 10, None),
        slice(0, 70, 100, None),
    ];
    let contents = written(&timeline);
    let track = |index: usize| {
        let track = contents.slices[index].track;
        (
            &*contents.tracks[&track].name,
            contents.tracks[&track].parent,
        )
    };
    assert_eq!(track(0), track(2));
    let main = Some(contents.slices[0].track);
    assert_eq!(track(1), ("main (4711), overlapping 1", main));
    assert_eq!(track(3), ("main (4711), overlapping 2", main));
}

#[test]
fn times_without_kernels_are_where_they_were_on_one_track_for_each_rank() {
    let mut timeline = empty();
    timeline.start_unix_ns = 0;
    let gaps = [(0, 100, 400), (0, 600, 100), (1, 200, 300), (1, 550, 10)];
    for (rank, start_ns, duration_ns) in gaps {
        timeline.kernel_gaps.push(KernelGap {
            rank: Some(rank),
            start_ns,
            duration_ns,
            reason: format!("of rank {rank}").into(),
            non_exhaustive: (),
        });
    }
    let contents = written(&timeline);
    let mut found = Vec::new();
    for slice in &contents.slices {
        assert_eq!(slice.category, "kernel_gap");
        let track = &contents.tracks[&slice.track].name;
        let rank = u64::from(slice.name == "of rank 1");
        assert_eq!(track, &format!("kernels not recorded, rank {rank}"));
        let end = slice.end.expect("a slice");
        found.push((rank, slice.start, end - slice.start));
    }
    found.sort_unstable();
    assert_eq!(found, gaps);
    let tracks = contents.tracks.values();
    let of_gaps = tracks.filter(|track| track.name.starts_with("kernels not recorded"));
    assert_eq!(of_gaps.count(), 2);
}

#[test]
fn steps_counters_replays_and_what_is_missing_are_written() {
    let mut timeline = empty();
    timeline.start_unix_ns = 0;
    timeline.duration_ns = 1000;
    timeline.steps = vec![
        Step {
            number: 1,
            start_ns: 500,
            end_ns: 900,
            track: None,
            slice: None,
            non_exhaustive: (),
        },
        Step {
            number: 0,
            start_ns: 0,
            end_ns: 500,
            track: None,
            slice: None,
            non_exhaustive: (),
        },
    ];
    timeline.counters = vec![Counter {
        name: "host memory".to_owned(),
        unit: "bytes".to_owned(),
        device: None,
        samples: vec![(1, 4096.0), (2, 0.5), (900, -3.0)],
        non_exhaustive: (),
    }];
    timeline.replays = vec![Replay {
        name: 1,
        track: Some(1),
        noticed_ns: 700,
        duration_ns: 50,
        self_ns: 40,
        non_exhaustive: (),
    }];
    timeline.missing = vec![
        ("scopes came late".to_owned(), 3),
        ("it ended early".to_owned(), 0),
    ];
    let contents = written(&timeline);
    let slices = contents.slices.iter();
    let slices: Vec<_> = slices
        .map(|slice| (&*slice.name, slice.start, slice.end))
        .collect();
    assert_eq!(
        slices,
        [
            ("step 0", 0, Some(500)),
            ("step 1", 500, Some(900)),
            ("load", 700, None),
            ("3 scopes came late", 1000, None),
            ("it ended early", 1000, None),
        ]
    );
    assert_eq!(contents.slices[2].arguments["stream"], "stream 7 (default)");
    let (track, samples) = contents.counters.iter().next().expect("a counter");
    assert_eq!(*samples, timeline.counters[0].samples);
    assert_eq!(contents.tracks[track].unit, Some((Some(3), None)));
}

#[test]
fn what_is_before_the_start_keeps_its_distance() {
    let mut timeline = empty();
    timeline.slices = vec![slice(0, -50, 100, None), slice(0, -20, 10, Some(0))];
    timeline.start_unix_ns = 30;
    let contents = written(&timeline);
    let starts: Vec<i64> = contents.slices.iter().map(|slice| slice.start).collect();
    assert_eq!(starts[1] - starts[0], 30);
}

#[test]
fn what_refers_to_nothing_is_left_out() {
    let mut timeline = empty();
    timeline.slices = vec![slice(99, 0, 10, None), slice(0, 5, 10, Some(77))];
    timeline.slices[1].name = 99;
    timeline.slices[1].shapes = Some(99);
    let contents = written(&timeline);
    let [slice] = &contents.slices[..] else {
        panic!("one slice: {contents:#?}")
    };
    assert_eq!(slice.name, "(unknown)");
    assert!(written(&Timeline::default()).slices.is_empty());
}

/// A GPU scope is a slice of a thread, one of a stream, and an arrow.
#[test]
fn a_gpu_scope_takes_at_most_120_bytes() {
    const SCOPES: u32 = 100_000;
    let mut timeline = empty();
    for index in 0..SCOPES {
        let start = i64::from(index) * 10_007;
        timeline.slices.push(slice(0, start, 8_000, None));
    }
    for index in 0..SCOPES {
        let start = i64::from(index) * 10_007 + 3_000;
        timeline.slices.push(slice(1, start, 9_000, Some(index)));
    }
    let bytes = write_timeline(&timeline, Vec::new()).expect("to memory");
    let each = bytes.len() as f64 / f64::from(SCOPES);
    println!("{each} bytes");
    assert!(each <= 120.0, "{each}");
    assert_eq!(read(&bytes).arrows.len(), SCOPES as usize);
}

#[test]
fn work_has_its_arguments_and_an_arrow_from_its_launch() {
    let mut timeline = empty();
    let work = |kind| GpuWork {
        kind,
        correlation: 17,
        ..GpuWork::default()
    };
    let kernel = KernelLaunch {
        grid: [64, 2, 1],
        block: [256, 1, 1],
        ..KernelLaunch::default()
    };
    let copy = MemoryCopy {
        bytes: 1000,
        ..MemoryCopy::default()
    };
    timeline.work = vec![
        work(GpuWorkKind::Kernel(kernel)),
        work(GpuWorkKind::Memcpy(copy)),
    ];
    timeline.launches = vec![Launch {
        track: 0,
        name: 1,
        start_ns: 20,
        duration_ns: 5,
        parent: Some(0),
        correlation: 17,
        since_entered_ns: None,
        slice: None,
        non_exhaustive: (),
    }];
    let on_stream = |work, start_ns, launch| Slice {
        kind: SliceKind::GpuWork,
        work: Some(work),
        launch,
        ..slice(1, start_ns, 50, Some(0))
    };
    timeline.slices = vec![
        slice(0, 10, 100, None),
        on_stream(0, 40, Some(0)),
        on_stream(1, 90, None),
    ];
    let contents = written(&timeline);
    let [scope, launch, kernel, copy, idle @ ..] = &contents.slices[..] else {
        panic!("four slices: {contents:#?}")
    };
    let begin = timeline.start_unix_ns;
    let idle: Vec<_> = idle
        .iter()
        .map(|slice| {
            assert_eq!(slice.category, "gpu_idle");
            let span = (slice.start - begin, slice.end.map(|end| end - begin));
            (span, &*slice.name)
        })
        .collect();
    assert_eq!(idle, [((0, Some(40)), "before the first work")]);
    assert_eq!(
        contents.tracks[&contents.slices[4].track].name,
        "idle because, GPU 0 of rank 3"
    );
    assert_eq!((&*launch.name, &*launch.category), ("load", "launch"));
    assert_eq!(
        (launch.track, launch.end),
        (scope.track, Some(launch.start + 5))
    );
    assert_eq!(kernel.arguments["grid"], "64 x 2 x 1");
    assert_eq!(kernel.arguments["correlation"], "17");
    assert_eq!(copy.arguments["GB/s"], "20");
    assert_eq!(contents.arrows.len(), 2);
    let start = timeline.start_unix_ns;
    for (from, to) in &contents.arrows {
        let (from, to) = (&contents.slices[*from], &contents.slices[*to]);
        // Of the copy, only the scope is known.
        let expected = if to.start == start + 40 {
            launch
        } else {
            scope
        };
        assert_eq!(from.start, expected.start);
    }
}
