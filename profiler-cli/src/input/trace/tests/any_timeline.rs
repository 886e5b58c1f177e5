//! Any time line that a window may have is read as it was written.

use std::fmt::Debug;

use profiler_report::{
    Counter, Device, GpuWork, GpuWorkKind, KernelGap, KernelLaunch, Launch, MemoryCopy, MemoryFill,
    MemoryKind, MemoryUse, ProcessGroup, ProcessorSample, ProcessorUse, Replay, Slice,
    SliceDetails, SliceEnding, SliceKind, SliceName, Step, Timeline, Track, TrackKind, Wait,
    WaitKind,
};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::round_trip::written;

/// Describes everything in a time line, with texts in place of indices.
pub(super) fn whole(line: &Timeline) -> Vec<String> {
    let start = line.start_unix_ns;
    let track = |index: Option<u32>| {
        let mut track = line.tracks.get(index? as usize)?.clone();
        track.rank = track.rank.or(Some(0));
        Some(track)
    };
    let name = |index: u32| line.names.get(index as usize);
    let short = |index: u32| name(index).map(|name| (&name.text, &name.short));
    let call = |index: Option<u32>| {
        let slice = line.slices.get(index? as usize)?;
        Some((short(slice.name), slice.start_ns + start, slice.kind))
    };
    let slices = line.slices.iter().map(|slice| {
        let mut plain = *slice;
        plain.start_ns += start;
        (plain.track, plain.name, plain.parent, plain.launch) = (0, 0, None, None);
        (plain.category, plain.shapes, plain.details, plain.work) = (None, None, None, None);
        let launch = slice.launch.and_then(|at| line.launches.get(at as usize));
        let launch = launch.map(|launch| (launch.start_ns + start, launch.correlation));
        // A file says the categories of work.
        let category = slice.category.filter(|_| slice.kind != SliceKind::GpuWork);
        let category = category.map(|at| &line.categories[at as usize]);
        let is_call = slice.kind == SliceKind::Call;
        let name = (short(slice.name), name(slice.name).filter(|_| is_call));
        let text = (
            name,
            category,
            slice.shapes.map(|at| &line.shapes[at as usize]),
        );
        let details = slice.details.map(|at| &line.details[at as usize]);
        let work = slice.work.map(|at| line.work[at as usize]);
        let places = (track(Some(slice.track)), call(slice.parent), launch);
        shown("slice", (plain, text, places, details, work))
    });
    let launches = line.launches.iter().map(|launch| {
        let mut plain = *launch;
        plain.start_ns += start;
        (plain.track, plain.name, plain.parent, plain.slice) = (0, 0, None, None);
        let places = (
            track(Some(launch.track)),
            call(launch.parent),
            call(launch.slice),
        );
        shown("launch", (plain, short(launch.name), places))
    });
    let waits = line.waits.iter().map(|wait| {
        let mut plain = *wait;
        plain.start_ns += start;
        plain.name = 0;
        shown("wait", (plain, short(wait.name)))
    });
    let gaps = line.kernel_gaps.iter().map(|gap| {
        let mut gap = gap.clone();
        gap.start_ns += start;
        shown("gap", gap)
    });
    let replays = line.replays.iter().map(|replay| {
        let mut plain = *replay;
        plain.noticed_ns += start;
        (plain.name, plain.track) = (0, None);
        shown("replay", (plain, short(replay.name), track(replay.track)))
    });
    let steps = line.steps.iter().map(|step| {
        let (begin, end) = (step.start_ns + start, step.end_ns + start);
        let places = (track(step.track), call(step.slice));
        shown("step", (step.number, begin, end, places))
    });
    let counters = line.counters.iter().map(|counter| {
        let mut counter = counter.clone();
        for (at, _) in &mut counter.samples {
            *at += start;
        }
        shown("counter", counter)
    });
    let processor = line.processor.iter().map(|of_thread| {
        let mut of_thread = of_thread.clone();
        for sample in &mut of_thread.samples {
            sample.at_ns += start;
        }
        let track = track(Some(std::mem::take(&mut of_thread.track)));
        shown("processor", (of_thread, track))
    });
    let job = (line.world_size, &line.backend, &line.groups);
    let about = (line.has_kernels, job, line.cycle, line.step_num);
    let devices = line.devices.iter().map(|device| shown("device", device));
    let parts = slices
        .chain(launches)
        .chain(waits)
        .chain(replays)
        .chain(gaps);
    let parts = parts.chain(steps).chain(counters).chain(processor);
    let mut parts: Vec<String> = parts.chain(devices).collect();
    parts.push(shown("about", (about, &line.metadata, &line.missing)));
    parts.sort();
    parts
}

fn shown(what: &str, value: impl Debug) -> String {
    format!("{what}: {value:?}")
}

/// The largest whole number that all readers of JSON keep.
const EXACT: u64 = 1 << 53;
const SLOT_NS: i64 = 10_000_000;
const COPY: &str = "Memcpy PtoP (Device -> Pinned)";
const FILL: &str = "Memset (Managed)";
const WAITS: [(&str, WaitKind); 4] = [
    ("Event Sync", WaitKind::EventSynchronize),
    ("Stream Wait Event", WaitKind::StreamWaitEvent),
    ("Stream Sync", WaitKind::StreamSynchronize),
    ("Context Sync", WaitKind::ContextSynchronize),
];

/// What a call has beside its place.
#[derive(Clone, Debug)]
struct Call {
    kind: SliceKind,
    thread: u32,
    name: u32,
    is_inside: bool,
    /// Another call is its parent, if there are as many.
    parent: Option<u32>,
    self_ns: i64,
    ending: SliceEnding,
    category: Option<u32>,
    shapes: Option<u32>,
    bytes: (Option<u64>, Option<i64>),
    details: Option<SliceDetails>,
    gpu: Option<Gpu>,
    launch: Option<(Option<u32>, i64, u32)>,
    work: Option<GpuWork>,
}

#[derive(Clone, Debug)]
struct Gpu {
    is_range: bool,
    duration: i64,
    measured: Option<i64>,
    self_ns: i64,
    uncertainty: Option<i64>,
    moved: Option<i64>,
}

fn gpu() -> impl Strategy<Value = Gpu> {
    let duration = prop_oneof![Just(0), 1..5_000_000_i64];
    let moved = (of(0..9_999_i64), of(-9_999..9_999_i64));
    let times = (duration, of(1..5_000_000_i64), 0..5_000_000_i64);
    (any::<bool>(), times, moved).prop_map(
        |(is_range, (duration, measured, self_ns), (uncertainty, moved))| {
            let measured = measured.filter(|measured| *measured != duration);
            Gpu {
                is_range,
                duration,
                measured,
                self_ns: self_ns.min(measured.unwrap_or(duration)),
                uncertainty,
                moved,
            }
        },
    )
}

fn details() -> impl Strategy<Value = SliceDetails> {
    let text = || of("[a-z;():\"\\\\]{1,9}".prop_map(std::sync::Arc::from));
    let number = || 0..EXACT;
    let device = (of(-9..9_i64), of(number()), of(number()));
    let memory = (-9..9_i64, [number(), number(), number()], device, -9..9_i64);
    let all = (text(), text(), text(), of(memory), any::<bool>());
    all.prop_map(|(call, native, none, memory, is_bound)| {
        let mut details = SliceDetails {
            is_bound,
            ..SliceDetails::default()
        };
        (details.call_stack, details.native_stack) = (call, native);
        // At least one thing is known.
        details.no_gpu_time = none.or_else(|| Some("gone".into()));
        if let Some((net, [peak, allocated, total], device, own)) = memory {
            let mut memory = MemoryUse::default();
            (memory.host_net, memory.host_peak) = (net, peak);
            (memory.host_allocated, memory.host_total) = (allocated, total);
            (
                memory.device_net,
                memory.device_total,
                memory.device_reserved,
            ) = device;
            (details.memory, details.own_host_net) = (Some(memory), own);
        }
        details
    })
}

fn work() -> impl Strategy<Value = GpuWork> {
    let extents = || any::<[u32; 3]>();
    let kernel = (
        extents(),
        extents(),
        any::<u32>(),
        0..1_000_u32,
        0..1_000_u32,
    );
    let kernel = kernel.prop_map(|(grid, block, registers, fixed, dynamic)| {
        let mut launch = KernelLaunch::default();
        (launch.grid, launch.block, launch.registers) = (grid, block, registers);
        (launch.static_shared_bytes, launch.dynamic_shared_bytes) = (fixed, dynamic);
        GpuWorkKind::Kernel(launch)
    });
    let copy = (0..EXACT, of(1..9_u32)).prop_map(|(bytes, peer)| {
        let mut copy = MemoryCopy::default();
        (copy.bytes, copy.peer) = (bytes, peer);
        (copy.from, copy.to) = (MemoryKind::Device, MemoryKind::Pinned);
        GpuWorkKind::Memcpy(copy)
    });
    let fill = (0..EXACT).prop_map(|bytes| {
        let mut fill = MemoryFill::default();
        (fill.bytes, fill.memory) = (bytes, MemoryKind::Managed);
        GpuWorkKind::Memset(fill)
    });
    let node = of((any::<u32>(), 1..EXACT));
    (prop_oneof![kernel, copy, fill], any::<[u32; 3]>(), node).prop_map(
        |(kind, [context, stream, correlation], graph_node)| {
            let mut work = GpuWork::default();
            (work.kind, work.context, work.stream) = (kind, context, stream);
            (work.correlation, work.graph_node) = (correlation, graph_node);
            work
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let kind = select(vec![
        SliceKind::Call,
        SliceKind::Call,
        SliceKind::AsyncCall,
        SliceKind::FuturePoll,
    ]);
    let ending = select(vec![
        SliceEnding::Returned,
        SliceEnding::Panicked,
        SliceEnding::Dropped,
    ]);
    let place = (
        kind,
        0..2_u32,
        0..3_u32,
        any::<bool>(),
        of(0..9_u32),
        0..3_000_000_i64,
    );
    let about = (ending, of(0..3_u32), of(0..2_u32));
    let bytes = (of(0..EXACT), of(-9..9_i64));
    let on_gpu = (
        of(gpu()),
        of((of(0..9_u32), 0..40_i64, any::<u32>())),
        of(work()),
    );
    (place, about, bytes, of(details()), on_gpu).prop_map(
        |(place, about, bytes, details, on_gpu)| {
            let (kind, thread, name, is_inside, parent, self_ns) = place;
            let (ending, category, shapes) = about;
            let (gpu, launch, work) = on_gpu;
            Call {
                kind,
                thread,
                name,
                is_inside,
                parent,
                self_ns,
                ending,
                category,
                shapes,
                bytes,
                details,
                gpu,
                launch,
                work,
            }
        },
    )
}

/// The tracks: two threads, the scopes of a stream, its work, and futures.
fn tracks(rank: Option<u64>) -> Vec<Track> {
    let tracks = [
        (TrackKind::HostThread, 41, None),
        (TrackKind::HostThread, 42, None),
        (TrackKind::GpuStream, 7, Some(0)),
        (TrackKind::GpuStream, 7, Some(0)),
        (TrackKind::Futures, 0, None),
    ];
    let tracks = (0..).zip(tracks).map(|(number, (kind, id, device))| {
        let mut track = Track::default();
        (track.kind, track.id, track.device, track.rank) = (kind, id, device, rank);
        track.name = format!("track {number}");
        (track.process, track.process_name) = (4711, "app".to_owned());
        if device.is_some() {
            "H100".clone_into(&mut track.device_name);
        }
        track
    });
    tracks.collect()
}

const NAMES: [(&str, &str, &str); 9] = [
    ("app::a", "a", "src/a.rs:1"),
    ("b", "", ""),
    ("ProfilerStep", "", "src/b.rs:2"),
    ("kernel<int>", "", ""),
    (COPY, "", ""),
    (FILL, "", ""),
    ("cuLaunchKernel", "", ""),
    ("app::graph", "graph", ""),
    ("wait", "", ""),
];

/// A time line with tracks, names and other texts alone.
fn empty(rank: Option<u64>) -> Timeline {
    let mut line = Timeline {
        start_unix_ns: 1_700_000_000_000_000_000,
        has_kernels: true,
        tracks: tracks(rank),
        ..Timeline::default()
    };
    for (text, short, location) in NAMES
        .into_iter()
        .chain(WAITS.map(|(text, _)| (text, "", "")))
    {
        let mut name = SliceName::default();
        (name.text, name.short, name.location) = (text.into(), short.into(), location.into());
        line.names.push(name);
    }
    line.categories = ["user_annotation", "python_function", "x"]
        .map(Into::into)
        .into();
    line.shapes = ["[[32, -1], []]", "odd"].map(str::to_owned).into();
    line
}

/// Puts calls on their tracks: one after the other, or inside the one before.
fn placed(calls: Vec<Call>, rank: Option<u64>) -> Timeline {
    let mut line = empty(rank);
    let mut on_gpu = Vec::new();
    let mut future = None;
    for (index, call) in (0_u32..).zip(calls) {
        let slot = i64::from(index) * SLOT_NS;
        let before = line.slices.last().copied();
        let mut slice = Slice::default();
        (slice.kind, slice.name, slice.track) = (call.kind, call.name, call.thread);
        (slice.start_ns, slice.duration_ns) = (slot + 1_001, 4_000_001);
        let around = before.filter(|before| before.kind != SliceKind::AsyncCall && call.is_inside);
        if let Some(around) = around.filter(|around| around.duration_ns > 1_000_000) {
            (slice.track, slice.parent) = (around.track, index.checked_sub(1));
            slice.start_ns = around.start_ns + 100;
            slice.duration_ns = around.duration_ns - 300;
        }
        slice.parent = call
            .parent
            .filter(|parent| *parent < index)
            .or(slice.parent);
        match (call.kind, future) {
            (SliceKind::AsyncCall, _) => {
                (slice.track, slice.start_ns, slice.duration_ns) = (4, slot, 9_000_000);
                future = Some(index);
            }
            (SliceKind::FuturePoll, None) => slice.kind = SliceKind::Call,
            (SliceKind::FuturePoll, future) => slice.parent = future,
            _ => {}
        }
        slice.self_ns = call.self_ns.min(slice.duration_ns);
        let is_poll = slice.kind == SliceKind::FuturePoll;
        let has_category = slice.kind == SliceKind::Call;
        slice.category = call.category.filter(|_| has_category);
        (slice.ending, slice.shapes) = (call.ending, call.shapes);
        (slice.allocated_bytes, slice.device_bytes) = call.bytes;
        if let Some(details) = call.details {
            slice.details = u32::try_from(line.details.len()).ok();
            line.details.push(details);
        }
        if let Some(gpu) = call.gpu.filter(|_| !is_poll) {
            let mut scope = Slice::default();
            (scope.kind, scope.track, scope.name) = (SliceKind::GpuScope, 2, slice.name);
            (scope.parent, scope.duration_ns) = (Some(index), gpu.duration);
            scope.start_ns = if gpu.duration > 0 {
                slot
            } else {
                slice.start_ns + 7
            };
            if gpu.is_range {
                scope.kind = SliceKind::GpuRange;
            } else {
                (scope.measured_ns, scope.self_ns) = (gpu.measured, gpu.self_ns);
                (scope.uncertainty_ns, scope.moved_ns) = (gpu.uncertainty, gpu.moved);
            }
            on_gpu.push(scope);
        }
        let launch = call.launch.filter(|_| slice.track < 2);
        if let Some((parent, duration_ns, correlation)) = launch {
            let mut launch = Launch::default();
            (launch.track, launch.name, launch.duration_ns) = (slice.track, 6, duration_ns);
            launch.start_ns = slice.start_ns + 10;
            launch.parent = parent
                .filter(|parent| *parent < index && !is_poll)
                .or(Some(index));
            launch.correlation = correlation;
            launch.since_entered_ns = (correlation % 2 == 0).then_some(duration_ns / 3);
            line.launches.push(launch);
        }
        if let Some(mut work) = call.work {
            let mut ran = Slice::default();
            (ran.kind, ran.track) = (SliceKind::GpuWork, 3);
            (ran.start_ns, ran.duration_ns, ran.self_ns) = (slot + 2_000, 1_000_003, 1_000_003);
            ran.name = match work.kind {
                GpuWorkKind::Memcpy(_) => 4,
                GpuWorkKind::Memset(_) => 5,
                _ => 3,
            };
            ran.parent = Some(index);
            if launch.is_some() {
                let number = line.launches.len() - 1;
                ran.launch = u32::try_from(number).ok();
                ran.parent = line.launches[number].parent;
                work.correlation = line.launches[number].correlation;
            }
            ran.work = u32::try_from(line.work.len()).ok();
            line.work.push(work);
            on_gpu.push(ran);
        }
        line.slices.push(slice);
    }
    line.launches.sort_by_key(|launch| launch.start_ns);
    line.slices.extend(on_gpu);
    line
}

fn group(name: &str, size: u64) -> ProcessGroup {
    ProcessGroup {
        name: name.to_owned(),
        ranks: (0..size).collect(),
        ..ProcessGroup::default()
    }
}

/// Makes samples from lengths of spans, for how many thousandths of them the thread ran, and of the rest was ready to.
fn on_processor((track, spans): (u32, Vec<(i64, i64, i64)>)) -> ProcessorUse {
    let mut of_thread = ProcessorUse::default();
    let mut sample = ProcessorSample::default();
    (of_thread.track, sample.at_ns) = (track, 7);
    of_thread.samples.push(sample);
    for (ns, running, ready) in spans {
        let running = ns * running / 1_000;
        sample.at_ns += ns;
        sample.running_ns += running;
        sample.ready_ns += (ns - running) * ready / 1_000;
        of_thread.samples.push(sample);
    }
    of_thread
}

/// Adds what has no slices.
fn beside() -> impl Strategy<Value = Timeline> {
    let steps = prop::collection::vec((0..9 * SLOT_NS, 0..9 * SLOT_NS, of(0..2_u32)), 0..4);
    let replays = prop::collection::vec((of(2..4_u32), 0..SLOT_NS, 0..9_i64), 0..3);
    let gaps = prop::collection::vec((0..SLOT_NS, 0..SLOT_NS, "[a-z\"]{1,9}"), 0..3);
    let waits = prop::collection::vec((0..4_usize, 0..3_u32, 0..SLOT_NS, any::<u32>()), 0..4);
    let counter = (
        "[a-z]{1,4}",
        select(vec!["", "bytes", "jobs", "°C"]),
        of(0..3_u32),
    );
    let counters = prop::collection::btree_map(counter, -9.5..9.5_f64, 0..3);
    let spans = prop::collection::vec((1..SLOT_NS, 0..=1_000_i64, 0..=1_000_i64), 1..4);
    let processor = prop::collection::btree_map(0..2_u32, spans, 0..3);
    let keys = prop_oneof![
        "[a-z]{1,4}",
        select(vec!["profiler", "metadata.profiler", "rows", "traceEvents"])
            .prop_map(str::to_owned)
    ];
    let metadata = prop::collection::btree_map(keys, "[a-z\"]{0,9}", 0..4);
    let head = (of(0..EXACT), of(0..EXACT), of(0..9_u64), of(0..9_u64));
    let values = (counters, processor);
    (steps, replays, (waits, gaps), values, metadata, head).prop_map(
        |(
            steps,
            replays,
            (waits, gaps),
            (counters, processor),
            metadata,
            (cycle, step_num, rank, world_size),
        )| {
            let mut line = Timeline::default();
            for (number, (start, length, track)) in (3..).zip(steps) {
                let mut step = Step::default();
                (step.number, step.track) = (number, track);
                (step.start_ns, step.end_ns) = (start, start + length);
                line.steps.push(step);
            }
            for (track, at, ns) in replays {
                let mut replay = Replay::default();
                (replay.name, replay.track, replay.noticed_ns) = (7, track, at);
                (replay.duration_ns, replay.self_ns) = (2 * ns, ns);
                line.replays.push(replay);
            }
            for (kind, device, at, stream) in waits {
                let mut wait = Wait {
                    name: u32::try_from(NAMES.len() + kind).expect("few names"),
                    ..Wait::default()
                };
                (wait.rank, wait.start_ns, wait.duration_ns) = (rank, at, 1_001);
                wait.work.kind = GpuWorkKind::Synchronization(WAITS[kind].1);
                (wait.work.device, wait.work.stream) = (device, stream);
                line.waits.push(wait);
            }
            for (at, ns, reason) in gaps {
                let mut gap = KernelGap::default();
                (gap.rank, gap.start_ns, gap.duration_ns) = (rank, at, ns);
                gap.reason = reason.into();
                line.kernel_gaps.push(gap);
            }
            for ((name, unit, device), value) in counters {
                let mut counter = Counter::default();
                (counter.name, counter.unit, counter.device) = (name, unit.to_owned(), device);
                counter.samples = vec![(5, value), (9_001, 0.0)];
                line.counters.push(counter);
            }
            line.processor = processor.into_iter().map(on_processor).collect();
            for ordinal in 0..2 {
                let mut device = Device::default();
                (device.rank, device.ordinal) = (rank, ordinal);
                device.properties.multiprocessors = 132 + ordinal;
                line.devices.push(device);
            }
            line.metadata = metadata.into_iter().collect();
            (line.cycle, line.step_num) = (cycle, step_num);
            line.world_size = world_size.filter(|_| rank.is_some());
            if let Some(world_size) = line.world_size {
                line.backend = Some("cpu:gloo,cuda:\"nccl\"".to_owned());
                line.groups = ["0", "a \"b\""].map(|name| group(name, world_size)).into();
            }
            line.missing = vec![("lost \"all\"".to_owned(), 7)];
            line.tracks = tracks(rank);
            line
        },
    )
}

proptest! {
    #[test]
    fn any_timeline_is_kept(calls in prop::collection::vec(call(), 0..9), beside in beside()) {
        let rank = beside.tracks[0].rank;
        let mut line = placed(calls, rank);
        (line.steps, line.replays, line.waits) = (beside.steps, beside.replays, beside.waits);
        line.kernel_gaps = beside.kernel_gaps;
        (line.counters, line.processor) = (beside.counters, beside.processor);
        line.devices = beside.devices;
        (line.metadata, line.missing) = (beside.metadata, beside.missing);
        (line.cycle, line.step_num) = (beside.cycle, beside.step_num);
        (line.world_size, line.backend) = (beside.world_size, beside.backend);
        line.groups = beside.groups;
        let (again, text) = written(&line);
        let (before, after) = (whole(&line), whole(&again));
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(before, after, "{}", text);
        }
        prop_assert_eq!(before.len(), after.len(), "{}", text);
    }
}
