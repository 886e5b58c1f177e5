//! Kernels, copies, fills and waits, with the calls that launched them.

use std::sync::Arc;

use profiler_report::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};
use proptest::prelude::*;

use super::*;
use crate::session::{LaunchRecord, NONE, WorkRecord};

const COPY: &str = "Memcpy HtoD (Pageable -> Device)";
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
        let mut found = violations(&trace);
        // Any work may begin before its launch.
        found.retain(|violation| violation.rule != Rule::BeforeLaunch);
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
