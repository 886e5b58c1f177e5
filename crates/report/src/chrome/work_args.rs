//! The categories and arguments of kernels, copies, fills and waits, as PyTorch's profiler writes them.

use std::io::Write;

use super::event_writer::{EventLine, write_list};
use super::times::write_whole;
use crate::gpu_work::{GpuWork, GpuWorkKind, KernelLaunch};

/// Returns the category of some work.
pub(super) const fn category_of(work: &GpuWork) -> &'static str {
    match work.kind {
        GpuWorkKind::Kernel(_) => "kernel",
        GpuWorkKind::Memcpy(_) => "gpu_memcpy",
        GpuWorkKind::Memset(_) => "gpu_memset",
        GpuWorkKind::Synchronization(_) => "cuda_sync",
    }
}

/// Adds the arguments that depend on the kind of work; `ns` is how long it took.
pub(super) fn with_work<'w, W: Write>(
    event: EventLine<'w, W>,
    work: &GpuWork,
    ns: i64,
) -> EventLine<'w, W> {
    let event = match work.kind {
        GpuWorkKind::Kernel(launch) => with_launch(event, launch),
        GpuWorkKind::Memcpy(copy) => {
            let event = with_bytes(event, copy.bytes, ns);
            match copy.peer {
                Some(peer) => event
                    .whole("fromDevice", work.device.into())
                    .whole("toDevice", peer.into()),
                None => event,
            }
        }
        GpuWorkKind::Memset(fill) => with_bytes(event, fill.bytes, ns),
        GpuWorkKind::Synchronization(_) => event,
    };
    match work.graph_node {
        Some((graph, node)) => event
            .whole("graph id", graph.into())
            .whole("graph node id", node),
        None => event,
    }
}

fn with_launch<W: Write>(event: EventLine<'_, W>, launch: KernelLaunch) -> EventLine<'_, W> {
    let shared = u64::from(launch.static_shared_bytes) + u64::from(launch.dynamic_shared_bytes);
    let mut event = event
        .whole("registers per thread", launch.registers.into())
        .whole("shared memory", shared);
    if launch.dynamic_shared_bytes > 0 {
        let dynamic = launch.dynamic_shared_bytes;
        event = event.whole("dynamic shared memory", dynamic.into());
    }
    event
        .json("grid", |out| write_extents(out, launch.grid))
        .json("block", |out| write_extents(out, launch.block))
}

fn write_extents(out: &mut Vec<u8>, extents: [u32; 3]) {
    write_list(out, extents, |out, extent| write_whole(out, extent.into()));
}

/// Bytes in a nanosecond are gigabytes in a second.
fn with_bytes<W: Write>(event: EventLine<'_, W>, bytes: u64, ns: i64) -> EventLine<'_, W> {
    let event = event.whole("bytes", bytes);
    if ns > 0 {
        event.number("memory bandwidth (GB/s)", bytes as f64 / ns as f64)
    } else {
        event
    }
}
