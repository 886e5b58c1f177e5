//! Time lines of windows that are built by hand.

use std::collections::HashSet;

use profiler_report::internal::StreamKey;
use profiler_report::{GpuWork, GpuWorkKind, MemoryCopy, MemoryUse, WaitKind};
use proptest::prelude::*;

use super::*;
use crate::clock::clock;
use crate::cuda::CudaLoss;
use crate::session::ScopeDetails;
use crate::session::sample::Sample;

/// Converts microseconds to ticks.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some seconds at most"
)]
fn us(count: u64) -> u64 {
    (count as f64 * 1000.0 / clock().nanoseconds(1.0)).round() as u64
}

fn long(count: u64) -> i64 {
    us(count).cast_signed()
}

/// Returns the length of a tick in nanoseconds, to which times are rounded: 16 on some processors.
#[allow(clippy::cast_possible_truncation, reason = "some nanoseconds")]
fn tick() -> i64 {
    clock().nanoseconds(1.0).ceil() as i64
}

fn stream() -> StreamKey {
    StreamKey {
        context: 0,
        ..StreamKey::NOWHERE
    }
}

fn name<'t>(timeline: &'t Timeline, slice: &Slice) -> &'t str {
    &timeline.names[slice.name as usize].text
}

/// The name and the kind of a slice.
type Member<'t> = (&'t str, SliceKind);

/// Returns all slices, each with its parent.
fn family(timeline: &Timeline) -> Vec<(&str, SliceKind, Option<Member<'_>>)> {
    let parent = |slice: &Slice| {
        let parent = &timeline.slices[slice.parent? as usize];
        Some((name(timeline, parent), parent.kind))
    };
    let slices = timeline.slices.iter();
    slices
        .map(|slice| (name(timeline, slice), slice.kind, parent(slice)))
        .collect()
}

/// Checks the order that the documentation of `Timeline::slices` promises.
fn is_in_order(timeline: &Timeline) {
    let mut open: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
    let mut has_gpu = false;
    for (index, slice) in (0..).zip(&timeline.slices) {
        let is_gpu = matches!(slice.kind, SliceKind::GpuScope | SliceKind::GpuWork);
        assert!(is_gpu || !has_gpu, "what ran on the GPU comes last");
        has_gpu = is_gpu;
        assert!(slice.parent.is_none_or(|parent| parent < index));
        let kind = timeline.tracks[slice.track as usize].kind;
        assert_eq!(is_gpu, kind == TrackKind::GpuStream);
        assert_eq!(
            slice.kind == SliceKind::AsyncCall,
            kind == TrackKind::Futures
        );
        assert!((0..=slice.total_ns()).contains(&slice.self_ns));
        let (start, end) = (slice.start_ns, slice.start_ns + slice.duration_ns);
        assert!(start >= 0 && end <= timeline.duration_ns);
        let around = open.entry(slice.track).or_default();
        assert!(around.last().is_none_or(|(before, _)| *before <= start));
        while around.last().is_some_and(|(_, until)| *until <= start) {
            around.pop();
        }
        assert!(around.last().is_none_or(|(_, until)| end <= *until));
        around.push((start, end));
    }
    launches_nest(timeline);
}

/// On each track, launches nest with slices or follow them.
fn launches_nest(timeline: &Timeline) {
    let slices = timeline.slices.iter();
    let slices = slices.map(|slice| (slice.track, slice.start_ns, slice.duration_ns));
    let launches = timeline.launches.iter();
    let launches = launches.map(|launch| (launch.track, launch.start_ns, launch.duration_ns));
    let mut all: Vec<(u32, i64, i64)> = slices.chain(launches).collect();
    all.sort_by_key(|(track, start, length)| (*track, *start, -length));
    for track in all.chunk_by(|one, next| one.0 == next.0) {
        let mut nested = NestedTrack::default();
        for (track, start, length) in track {
            let added = nested.add(*start, start + length);
            assert!(added, "{start} on track {track} crosses another");
        }
    }
}

#[test]
fn launches_of_several_threads_without_scopes_have_tracks_of_their_own() {
    let mut sample = Sample::new();
    sample.scope("timeline: launches", 0, us(0), long(10));
    for (index, (thread, start, length)) in [
        // Two at once, one after them, and one across the end of the scope.
        (NONE, 5_000, 4_000),
        (NONE, 6_000, 4_000),
        (NONE, 9_000, 1_000),
        (0, 9_000, 3_000),
    ]
    .into_iter()
    .enumerate()
    {
        let ran = 20_000 + 1_000 * i64::try_from(index).expect("a few");
        sample.work("kernel", false, start, (ran, ran + 500), GpuWork::default());
        let launch = sample.work.launches.last_mut().expect("a launch");
        launch.thread = thread;
        launch.span.1 = launch.span.0 + length;
    }
    let timeline = sample.trace().timeline();
    is_in_order(&timeline);
    let track = |launch: &profiler_report::Launch| &*timeline.tracks[launch.track as usize].name;
    let [first, second, third, on_thread] = &timeline.launches[..] else {
        panic!("four launches")
    };
    assert_eq!(track(first), "threads without scopes 1");
    assert_eq!(track(second), "threads without scopes 2");
    assert_eq!(track(third), "threads without scopes 1");
    assert_eq!(on_thread.track, timeline.slices[0].track);
    assert!(
        (on_thread.duration_ns - 2_000).abs() <= 1 + tick(),
        "its larger part"
    );
}

#[test]
fn a_scope_comes_after_its_parent_and_has_its_own_time() {
    let mut sample = Sample::new();
    let outer = sample.scope("timeline: outer", 0, us(100), long(300));
    sample.scope("timeline: inner", outer, us(150), long(100));
    sample.gpu(stream(), 170_000, 40_000.0, 30_000.0);
    let timeline = sample.trace().timeline();
    let [outer, inner, gpu] = &timeline.slices[..] else {
        panic!("three slices: {timeline:?}")
    };
    assert_eq!(
        family(&timeline),
        [
            ("timeline: outer", SliceKind::Call, None),
            (
                "timeline: inner",
                SliceKind::Call,
                Some(("timeline: outer", SliceKind::Call))
            ),
            (
                "timeline: inner",
                SliceKind::GpuScope,
                Some(("timeline: inner", SliceKind::Call))
            ),
        ]
    );
    assert_eq!(inner.self_ns, inner.duration_ns);
    assert!((outer.self_ns + inner.duration_ns - outer.duration_ns).abs() <= 1 + tick());
    assert!((gpu.start_ns - 170_000).abs() <= 1 + tick());
    assert_eq!((gpu.duration_ns, gpu.self_ns), (40_000, 30_000));
    let track = &timeline.tracks[gpu.track as usize];
    assert_eq!((track.device, track.id), (Some(0), 7));
    assert_eq!(track.name, "stream 7 (default)");
    assert_eq!(timeline.tracks[outer.track as usize].name, "main (4711)");
    is_in_order(&timeline);
}

#[test]
fn a_poll_is_inside_its_future_and_so_is_what_it_calls() {
    let mut sample = Sample::new();
    let poll = sample.on_thread(1, "timeline: task", 0, us(10), long(50));
    sample.last().kind = RecordKind::Poll { future: 77 };
    sample.on_thread(1, "timeline: in task", poll, us(20), long(10));
    sample.on_thread(1, "timeline: task", 0, us(10), long(500));
    let future = sample.last();
    future.serial = 77;
    future.kind = RecordKind::Future { polled: long(50) };
    future.ending = RecordEnding::Dropped;
    let timeline = sample.trace().timeline();
    let future = ("timeline: task", SliceKind::AsyncCall);
    assert_eq!(
        family(&timeline),
        [
            (future.0, future.1, None),
            ("timeline: task", SliceKind::FuturePoll, Some(future)),
            ("timeline: in task", SliceKind::Call, Some(future)),
        ]
    );
    assert_eq!(timeline.slices[0].ending, SliceEnding::Dropped);
    let waits = timeline.slices[0].duration_ns - timeline.slices[0].self_ns;
    assert!((waits - 460_000).abs() <= 2 + 2 * tick(), "{waits}");
    is_in_order(&timeline);
}

#[test]
fn a_parent_on_a_later_thread_comes_first() {
    let mut sample = Sample::new();
    sample.on_thread(0, "timeline: chunk", 0, us(100), long(50));
    sample.extra(ScopeDetails {
        parent: 5,
        ..ScopeDetails::default()
    });
    sample.on_thread(1, "timeline: all", 0, us(100), long(200));
    sample.extra(ScopeDetails {
        shared: 5,
        ..ScopeDetails::default()
    });
    let timeline = sample.trace().timeline();
    assert_eq!(
        family(&timeline),
        [
            ("timeline: all", SliceKind::Call, None),
            (
                "timeline: chunk",
                SliceKind::Call,
                Some(("timeline: all", SliceKind::Call))
            ),
        ]
    );
    is_in_order(&timeline);
}

#[test]
fn slices_that_would_cross_others_have_tracks_of_their_own() {
    let mut sample = Sample::new();
    let outer = sample.scope("timeline: outer", 0, us(0), long(100));
    sample.scope("timeline: late", outer, us(50), long(100));
    sample.scope("timeline: inner", outer, us(60), long(10));
    for (serial, start) in [(91, 0), (92, 50), (93, 100)] {
        sample.scope("timeline: future", 0, us(start), long(100));
        let future = sample.last();
        (future.serial, future.kind) = (serial, RecordKind::Future { polled: 1 });
    }
    let timeline = sample.trace().timeline();
    is_in_order(&timeline);
    let track = |text: &str| -> Vec<&str> {
        let slices = timeline.slices.iter();
        slices
            .filter(|slice| name(&timeline, slice) == text)
            .map(|slice| &*timeline.tracks[slice.track as usize].name)
            .collect()
    };
    assert_eq!(track("timeline: inner"), track("timeline: outer"));
    assert_eq!(track("timeline: late"), ["thread 4711, overlapping 1"]);
    let futures = ["futures 1", "futures 2", "futures 1"];
    assert_eq!(track("timeline: future"), futures);
}

#[test]
fn memory_is_without_that_of_children() {
    let mut sample = Sample::new();
    let memory = |allocated, device| ScopeDetails {
        memory: Some(MemoryUse {
            host_net: 0,
            host_allocated: allocated,
            host_peak: allocated,
            host_total: 7000,
            device_net: Some(device),
            device_total: Some(1 << 20),
            device_reserved: None,
            non_exhaustive: (),
        }),
        ..ScopeDetails::default()
    };
    let outer = sample.scope("timeline: outer", 0, us(0), long(100));
    sample.extra(memory(5000, -100));
    let middle = sample.scope("timeline: middle", outer, us(10), long(50));
    sample.scope("timeline: inner", middle, us(20), long(10));
    sample.extra(memory(4096, 400));
    let timeline = sample.trace().timeline();
    let slices = timeline.slices.iter();
    let own: Vec<_> = slices
        .map(|slice| (slice.allocated_bytes, slice.device_bytes))
        .collect();
    assert_eq!(
        own,
        [
            (Some(904), Some(-500)),
            (None, None),
            (Some(4096), Some(400))
        ]
    );
    let counters = timeline.counters.iter();
    let counters: Vec<_> = counters
        .map(|counter| (&*counter.name, &*counter.unit, counter.samples.len()))
        .collect();
    assert_eq!(
        counters,
        [("host memory", "bytes", 2), ("CUDA memory", "bytes", 2)]
    );
}

#[test]
fn what_is_missing_is_counted_with_its_reason() {
    let mut sample = Sample::new();
    for _ in 0..3 {
        sample.scope("timeline: scope", 0, us(0), long(100));
        sample.gpu(stream(), 0, 50_000.0, 50_000.0);
    }
    sample.gpu[0].loss = Some(CudaLoss::PoolEmpty);
    sample.gpu[1].start = None;
    let mut trace = sample.trace();
    trace.meta.truncation.late = 4;
    trace.meta.truncation.cut_short = true;
    let timeline = trace.timeline();
    let missing = timeline.missing.iter();
    let missing: Vec<String> = missing
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    let [late, lost, unplaced, cut_short] = &missing[..] else {
        panic!("four reasons: {missing:#?}")
    };
    assert!(late.starts_with("4 scopes of earlier windows"), "{late}");
    assert!(lost.starts_with("1 GPU times are missing: event pool empty"));
    assert!(unplaced.starts_with("1 GPU times are in tables only"));
    assert!(cut_short.starts_with("0 the session ended"));
    let gpu = timeline.slices.iter();
    let gpu = gpu.filter(|slice| slice.kind == SliceKind::GpuScope);
    let mut places: Vec<(bool, i64)> = gpu
        .map(|slice| (slice.is_placed(), slice.total_ns()))
        .collect();
    places.sort_unstable();
    assert_eq!(places, [(false, 50_000), (true, 50_000)]);
    let averages = timeline.key_averages();
    assert_eq!(averages.self_cuda_time_total_ns, Some(100_000.0));
}

#[test]
fn gpu_times_that_seem_to_begin_before_the_window_keep_their_distance() {
    let mut sample = Sample::new();
    let outer = sample.scope("timeline: outer", 0, us(0), long(500));
    sample.gpu(stream(), -900_000, 200_000.0, 150_000.0);
    sample.scope("timeline: inner", outer, us(10), long(100));
    sample.gpu(stream(), -800_000, 50_000.0, 50_000.0);
    let timeline = sample.trace().timeline();
    let gpu = timeline.slices.iter();
    let gpu: Vec<&Slice> = gpu
        .filter(|slice| slice.kind == SliceKind::GpuScope)
        .collect();
    assert_eq!(gpu[1].start_ns - gpu[0].start_ns, 100_000);
    assert_eq!((gpu[0].duration_ns, gpu[1].duration_ns), (200_000, 50_000));
}

#[test]
fn a_scope_without_its_cpu_time_leaves_its_gpu_time() {
    let mut sample = Sample::new();
    let outer = sample.scope("timeline: outer", 0, us(0), long(100));
    let middle = sample.scope("timeline: middle", outer, us(10), long(50));
    sample.last().has_cpu = false;
    sample.gpu(stream(), 20_000, 10_000.0, 10_000.0);
    sample.scope("timeline: inner", middle, us(20), long(10));
    let timeline = sample.trace().timeline();
    assert_eq!(
        family(&timeline),
        [
            ("timeline: outer", SliceKind::Call, None),
            (
                "timeline: inner",
                SliceKind::Call,
                Some(("timeline: outer", SliceKind::Call))
            ),
            ("timeline: middle", SliceKind::GpuScope, None),
        ]
    );
}

#[test]
fn names_shapes_and_steps_are_those_of_the_window() {
    let mut sample = Sample::new();
    for _ in 0..2 {
        sample.scope("timeline: shaped", 0, us(0), long(100));
        sample.extra(ScopeDetails {
            shapes: Some(vec![Box::from([32, 64]), Box::from([])]),
            ..ScopeDetails::default()
        });
    }
    sample.steps.push(crate::session::Step {
        number: 3,
        thread: 0,
        start: sample.origin + us(10),
        end: sample.origin + us(20),
    });
    let timeline = sample.trace().timeline();
    assert_eq!(timeline.shapes, ["[[32, 64], []]"]);
    assert!(timeline.slices.iter().all(|slice| slice.shapes == Some(0)));
    let [name] = &timeline.names[..] else {
        panic!("the other names of the program are left out")
    };
    assert!(name.location.contains("tests.rs:"), "{}", name.location);
    let [step] = timeline.steps[..] else {
        panic!("one step")
    };
    assert_eq!(step.number, 3);
    assert!((step.end_ns - step.start_ns - 10_000).abs() <= 1 + tick());
}

/// Random handles and polls can make a scope its own ancestor, which no program can.
fn no_scope_is_inside_itself(trace: &Trace) -> bool {
    let count = trace.nodes.len();
    let up = |index: &usize| Some(trace.nodes[*index].parent as usize).filter(|up| *up < count);
    let depth = |index| {
        std::iter::successors(Some(index), up)
            .take(count + 1)
            .count()
    };
    (0..count).all(|index| depth(index) <= count)
}

proptest! {
    #[test]
    fn any_window_keeps_the_order(
        scopes in prop::collection::vec(
            (0_u32..2, 0_u64..400, 0_u64..200, 0_usize..8, prop::option::of((0_i64..600, 0_i64..100))),
            0..40,
        ),
    ) {
        let mut sample = Sample::new();
        let mut polls = HashSet::new();
        for (index, (thread, start, elapsed, kind, gpu)) in (0_u64..).zip(scopes) {
            // A serial of an earlier scope, of this thread or of another one. A scope inside a poll is inside its future,
            // and at random that would be inside itself.
            let parent = (start * 31) % (index + 1);
            let is_poll = parent > 0 && polls.contains(&parent);
            let parent = if is_poll || kind == 1 { 0 } else { parent };
            if kind == 0 {
                polls.insert(index + 1);
            }
            sample.on_thread(thread, "timeline: any", parent, us(start), long(elapsed));
            match kind {
                0 => sample.last().kind = RecordKind::Poll { future: 1000 + start % 7 },
                1 => {
                    let future = sample.last();
                    future.serial = 1000 + index % 7;
                    future.kind = RecordKind::Future { polled: long(elapsed / 2) };
                }
                2 => sample.extra(ScopeDetails { shared: index + 1, ..ScopeDetails::default() }),
                3 => sample.extra(ScopeDetails { parent: parent + 1, ..ScopeDetails::default() }),
                _ => {}
            }
            if let Some((start, length)) = gpu {
                let length = length as f64 * 1000.0;
                sample.gpu(stream(), start * 1000, length, length / 2.0);
            }
        }
        let trace = sample.trace();
        prop_assume!(no_scope_is_inside_itself(&trace));
        let timeline = trace.timeline();
        is_in_order(&timeline);
        let gpu = trace.nodes.iter().filter(|node| node.gpu != NONE).count();
        prop_assert_eq!(timeline.slices.len(), trace.scopes.len() + gpu);
    }
}

#[test]
fn kernels_are_on_their_streams_with_the_calls_that_launched_them() {
    let mut sample = Sample::new();
    sample.scope("timeline: launches", 0, 0, long(100));
    sample.gpu(stream(), 10_000, 40_000.0, 40_000.0);
    let copy = GpuWork {
        kind: GpuWorkKind::Memcpy(MemoryCopy {
            bytes: 4096,
            ..MemoryCopy::default()
        }),
        ..GpuWork::default()
    };
    sample.work("kernel", true, 5_000, (12_000, 30_000), GpuWork::default());
    sample.work("Memcpy HtoD", false, 6_000, (30_000, 35_000), copy);
    let elsewhere = sample.work.work.last_mut().expect("a copy");
    (elsewhere.stream_key, elsewhere.details.stream) = (None, 7);
    let wait = GpuWork {
        kind: GpuWorkKind::Synchronization(WaitKind::StreamSynchronize),
        ..GpuWork::default()
    };
    sample.work("wait", true, 7_000, (30_000, 50_000), wait);
    sample.work("lost", true, 8_000, (0, 0), GpuWork::default());
    sample.work.work.last_mut().expect("a kernel").span = None;
    sample.work.lost.without_time = 1;
    let timeline = sample.trace().timeline();
    is_in_order(&timeline);
    let launches = ("timeline: launches", SliceKind::Call);
    assert_eq!(
        family(&timeline),
        [
            ("timeline: launches", SliceKind::Call, None),
            ("timeline: launches", SliceKind::GpuScope, Some(launches)),
            ("kernel", SliceKind::GpuWork, Some(launches)),
            ("Memcpy HtoD", SliceKind::GpuWork, None),
        ]
    );
    let [_, scope, kernel, copy] = &timeline.slices[..] else {
        panic!("four slices")
    };
    assert_eq!((kernel.start_ns, kernel.duration_ns), (12_000, 18_000));
    let launch = timeline.launches[kernel.launch.expect("its launch") as usize];
    assert_eq!((launch.start_ns, launch.parent), (5_000, Some(0)));
    assert_eq!(
        &*timeline.names[launch.name as usize].text,
        "cuLaunchKernel"
    );
    let work = |slice: &Slice| timeline.work[slice.work.expect("what it did") as usize];
    assert_eq!(work(kernel).correlation, launch.correlation);
    assert!(matches!(work(copy).kind, GpuWorkKind::Memcpy(copy) if copy.bytes == 4096));
    let stream = |slice: &Slice| timeline.tracks[slice.track as usize].id;
    assert_eq!((stream(scope), stream(kernel)), (7, 7));
    assert_eq!(stream(copy), 8, "another stream has another number");
    assert_eq!(timeline.missing.len(), 1, "{:?}", timeline.missing);
    let averages = timeline.key_averages();
    let names: Vec<&str> = averages.rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["timeline: launches", "Memcpy HtoD"]);
    assert_eq!(averages.self_cuda_time_total_ns, Some(45_000.0));
}
