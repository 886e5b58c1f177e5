//! Kernels, copies, fills and waits, with the calls that launched them.

use std::sync::Arc;

use profiler_report::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};
use proptest::prelude::*;

use super::*;
use crate::session::{LaunchRecord, NONE, WorkRecord};

const COPY: &str = "Memcpy HtoD (Pageable -> Device)";
const KERNEL: &str = "void gemm<float, 4>(float const*, float*)";

fn of(kind: GpuWorkKind) -> GpuWork {
    GpuWork {
        kind,
        device: 0,
        context: 1,
        stream: 7,
        ..GpuWork::default()
    }
}

fn kernel() -> GpuWork {
    of(GpuWorkKind::Kernel(KernelLaunch {
        grid: [64, 2, 1],
        block: [256, 1, 1],
        registers: 32,
        static_shared_bytes: 1024,
        dynamic_shared_bytes: 4096,
        non_exhaustive: (),
    }))
}

fn copy(from: MemoryKind, to: MemoryKind) -> GpuWork {
    of(GpuWorkKind::Memcpy(MemoryCopy {
        bytes: 1_000_000,
        from,
        to,
        peer: None,
        non_exhaustive: (),
    }))
}

fn fill() -> GpuWork {
    of(GpuWorkKind::Memset(MemoryFill {
        bytes: 4096,
        memory: MemoryKind::Device,
        non_exhaustive: (),
    }))
}

/// A scope with a GPU time from 100 to 400 µs, in which a copy, a kernel and a fill ran.
fn recorded() -> Sample {
    let mut sample = Sample::new();
    sample.scope("work: forward", 0, us(50), long(100));
    sample.gpu(stream(), 99_500, 300_000.0, 300_000.0);
    let copy = copy(MemoryKind::Pageable, MemoryKind::Device);
    sample.work(COPY, true, 60_000, (100_000, 150_000), copy);
    sample.work(KERNEL, true, 70_000, (160_000, 390_000), kernel());
    sample.work("Memset (Device)", true, 80_000, (390_000, 399_000), fill());
    sample
}

#[test]
fn kernels_copies_and_fills_have_the_fields_of_pytorch() {
    let trace = recorded().trace();
    let events = events(&trace);
    let [kernel] = &of_category(&events, "kernel")[..] else {
        panic!("one kernel")
    };
    assert_eq!(kernel["name"], KERNEL);
    let args = &kernel["args"];
    assert_eq!(
        (&args["grid"], &args["block"]),
        (&json!([64, 2, 1]), &json!([256, 1, 1]))
    );
    assert_eq!(args["registers per thread"], 32);
    assert_eq!(args["shared memory"], 5120);
    assert_eq!((&args["device"], &args["context"]), (&json!(0), &json!(1)));
    assert_eq!(args["stream"], kernel["tid"]);
    assert_eq!(ns(&kernel["dur"]), 230_000);
    assert!(args.get("scope").is_none(), "it is no stand-in");
    let [copy] = &of_category(&events, "gpu_memcpy")[..] else {
        panic!("one copy")
    };
    assert_eq!(copy["name"], COPY);
    assert_eq!(copy["args"]["bytes"], 1_000_000);
    assert_eq!(copy["args"]["memory bandwidth (GB/s)"], 20);
    let [fill] = &of_category(&events, "gpu_memset")[..] else {
        panic!("one fill")
    };
    assert_eq!(fill["name"], "Memset (Device)");
    assert_eq!(violations(&trace), []);
}

#[test]
fn work_is_on_the_track_of_its_stream_and_gpu_times_of_scopes_are_on_one_below() {
    let events = events(&recorded().trace());
    let [annotation] = &of_category(&events, "gpu_user_annotation")[..] else {
        panic!("one annotation")
    };
    let (start, end) = extent(annotation);
    assert_eq!(end - start, 300_000, "its length is exact");
    for category in ["kernel", "gpu_memcpy", "gpu_memset"] {
        let [work] = &of_category(&events, category)[..] else {
            panic!("one {category}")
        };
        assert_eq!(work["tid"], work["args"]["stream"]);
        assert_ne!(work["tid"], annotation["tid"]);
    }
}

#[test]
fn each_call_is_in_its_scope_with_an_arrow_to_its_work() {
    let events = events(&recorded().trace());
    let [scope] = &of_category(&events, "cpu_op")[..] else {
        panic!("one scope")
    };
    let launches = of_category(&events, "cuda_runtime");
    assert_eq!(launches.len(), 3);
    for launch in &launches {
        assert_eq!(launch["name"], "cudaLaunchKernel");
        assert_eq!(launch["args"]["call"], "cuLaunchKernel");
        assert_eq!(launch["args"]["External id"], scope["args"]["External id"]);
        assert_eq!(ns(&launch["dur"]), 100);
        assert_eq!(launch["tid"], scope["tid"]);
        let correlation = &launch["args"]["correlation"];
        let arrows: Vec<&Value> = events
            .iter()
            .filter(|event| event["cat"] == "ac2g" && event["id"] == *correlation)
            .collect();
        let [from, to] = arrows[..] else {
            panic!("one arrow")
        };
        assert_eq!((&from["ts"], &from["tid"]), (&launch["ts"], &launch["tid"]));
        let work = events
            .iter()
            .find(|event| {
                event["args"]["device"] == 0 && event["args"]["correlation"] == *correlation
            })
            .expect("its work");
        assert_eq!((&to["ts"], &to["tid"]), (&work["ts"], &work["tid"]));
    }
}

#[test]
fn nodes_of_a_graph_that_run_at_once_are_on_tracks_of_their_own() {
    let mut sample = recorded();
    let launch = sample.work.work[1].launch;
    for (node, span) in [(1, (170_000, 200_000)), (2, (180_000, 210_000))] {
        let mut work = sample.work.work[1].clone();
        let (start, _) = work.span.expect("a time");
        work.span = Some((start - 160_000 + span.0, start - 160_000 + span.1));
        work.details.graph_node = Some((5, node));
        sample.work.work.push(work);
    }
    let trace = sample.trace();
    let events = events(&trace);
    let kernels = of_category(&events, "kernel");
    let tids: Vec<&Value> = kernels.iter().map(|kernel| &kernel["tid"]).collect();
    assert_eq!(tids.len(), 3);
    assert!(tids[0] != tids[1] && tids[1] != tids[2] && tids[0] != tids[2]);
    let streams: Vec<&Value> = kernels
        .iter()
        .map(|kernel| &kernel["args"]["stream"])
        .collect();
    assert_eq!(streams, [&kernels[0]["tid"]; 3]);
    assert_eq!(kernels[2]["args"]["graph node id"], 2);
    let arrows = of_category(&events, "ac2g");
    let from_launch = arrows
        .iter()
        .filter(|arrow| arrow["id"] == CORRELATIONS + 1 + u64::from(launch));
    assert_eq!(from_launch.count(), 2, "one arrow, to the first of them");
    assert_eq!(violations(&trace), []);
}

#[test]
fn work_of_no_scope_and_no_known_launch_is_shown_too() {
    let mut sample = recorded();
    sample.work("outside", false, 450_000, (500_000, 510_000), kernel());
    sample.work("unknown", false, 460_000, (520_000, 530_000), kernel());
    for work in sample.work.work.iter_mut().skip(3) {
        work.stream_key = None;
        work.details.stream = 13;
    }
    sample.work.launches.pop();
    let trace = sample.trace();
    let events = events(&trace);
    let kernels = of_category(&events, "kernel");
    assert_eq!(kernels.len(), 3);
    for kernel in &kernels[1..] {
        assert_eq!(kernel["args"]["stream"], 13, "CUPTI's number");
        assert_eq!(kernel["args"]["External id"], 0);
    }
    let launches = of_category(&events, "cuda_runtime");
    let unknown = launches
        .iter()
        .filter(|launch| launch["name"] == "launch that was not recorded");
    assert_eq!(unknown.count(), 1);
    assert_eq!(violations(&trace), []);
}

#[test]
fn waits_are_beside_the_streams_and_no_kernels() {
    let mut sample = recorded();
    let wait = of(GpuWorkKind::Synchronization(WaitKind::StreamSynchronize));
    sample.work("Stream Sync", true, 90_000, (90_000, 400_000), wait);
    let trace = sample.trace();
    let events = events(&trace);
    let [wait] = &of_category(&events, "cuda_sync")[..] else {
        panic!("one wait")
    };
    assert_eq!(wait["name"], "Stream Sync");
    assert!(wait["args"].get("stream").is_none());
    assert_eq!(violations(&trace), []);
}

#[test]
fn lost_work_is_counted_by_reason() {
    let mut sample = recorded();
    assert_eq!(parsed(&recorded().trace())["profiler"]["complete"], true);
    sample.work.work[1].span = None;
    sample.work.lost.without_time = 1;
    sample.work.lost.no_buffer = 4;
    let trace = sample.trace();
    assert_eq!(of_category(&events(&trace), "kernel").len(), 0);
    let profiler = &parsed(&trace)["profiler"];
    assert_eq!(profiler["complete"], false);
    let missing = trace.timeline().missing;
    let counts: Vec<u64> = missing.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [4, 1], "{missing:?}");
    assert_eq!(profiler["missing"], json!(missing));
}

#[test]
fn a_window_without_kernels_says_why() {
    let mut sample = Sample::new();
    sample.work.missing = Some("CUPTI was not found".to_owned());
    let trace = sample.trace();
    let missing = trace.timeline().missing;
    assert_eq!(parsed(&trace)["profiler"]["missing"], json!(missing));
    assert_eq!(missing, [("no kernels: CUPTI was not found".to_owned(), 0)]);
}

/// A scope: its thread, start and length in microseconds, and its GPU time, if it has one: start and length.
type AnyScope = (u32, u64, u64, Option<(i64, u64)>);
/// Its launch, if that is known: start, length, thread and scope. Its start, length, stream and kind.
type AnyWork = (Option<(i64, i64, u32, u32)>, i64, i64, u32, u32);

fn any_trace() -> impl Strategy<Value = (Vec<AnyScope>, Vec<AnyWork>)> {
    let scope = (
        0_u32..2,
        0_u64..500,
        1_u64..200,
        prop::option::of((0_i64..600, 0_u64..200)),
    );
    let launch = (0_i64..500_000, 0_i64..50_000, 0_u32..3, 0_u32..12);
    let work = (
        prop::option::of(launch),
        0_i64..600_000,
        0_i64..100_000,
        0_u32..3,
        0_u32..4,
    );
    (
        prop::collection::vec(scope, 0..12),
        prop::collection::vec(work, 0..30),
    )
}

fn sample_of(scopes: Vec<AnyScope>, work: Vec<AnyWork>) -> Sample {
    let mut sample = Sample::new();
    let mut scopes = scopes;
    scopes.sort_by_key(|(thread, start, length, _)| (*thread, *start, u64::MAX - length));
    let count = scopes.len();
    for (thread, start, length, gpu) in scopes {
        sample.on_thread(thread, "work: any", 0, us(start), long(length));
        if let Some((start, length)) = gpu {
            let length = length as f64 * 1000.0;
            sample.gpu(stream(), start * 1000, length, length);
        }
    }
    let origin = sample.unix_ns();
    sample.work.is_recorded = true;
    let names = [
        "ProfilerStep<]}",
        COPY,
        "Memset (Device)",
        "Context Sync",
        "cuLaunchKernel",
    ];
    sample.work.names = names.map(Arc::from).into();
    let mut work = work;
    work.sort_by_key(|work| work.0.map(|launch| launch.0));
    for (launch, start, length, stream_number, kind) in work {
        let index = u32::try_from(sample.work.launches.len()).expect("few");
        if let Some((start, length, thread, scope)) = launch {
            sample.work.launches.push(LaunchRecord {
                name: 4,
                thread: if thread == 2 { NONE } else { thread },
                span: (origin + start, origin + start + length),
                scope: if (scope as usize) < count {
                    scope
                } else {
                    NONE
                },
                since: None,
                correlation: 1,
            });
        }
        let mut details = match kind {
            0 => kernel(),
            1 => copy(MemoryKind::Device, MemoryKind::Pinned),
            2 => fill(),
            _ => of(GpuWorkKind::Synchronization(WaitKind::ContextSynchronize)),
        };
        details.stream = stream_number;
        sample.work.work.push(WorkRecord {
            name: kind,
            span: Some((origin + start, origin + start + length)),
            launch: if launch.is_some() { index } else { NONE },
            stream_key: (stream_number == 0).then(stream),
            details,
        });
    }
    sample.work.work.sort_by_key(|work| work.span);
    sample
}

proptest! {
    #[test]
    fn traces_of_any_work_keep_the_rules_of_their_readers((scopes, work) in any_trace()) {
        let trace = sample_of(scopes, work).trace();
        let found = violations(&trace);
        prop_assert!(found.is_empty(), "{found:#?}");
        let events = events(&trace);
        let shown: i64 = events
            .iter()
            .filter(|event| ["kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"].iter().any(|category| event["cat"] == *category))
            .map(|event| ns(&event["dur"]))
            .sum();
        let took: i64 = trace.work.work.iter().filter_map(|work| work.span).map(|(start, end)| end - start).sum();
        prop_assert_eq!(shown, took, "all of it, with its exact length");
    }
}
