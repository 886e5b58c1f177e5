//! Arguments of kernels, copies and fills, and of the calls that launched them.

use super::event::{EventBuilder, Key};
use crate::{GpuWork, GpuWorkKind, KernelLaunch, Launch};

pub(super) fn add_launch(event: &mut EventBuilder, launch: &Launch) {
    event.integer(Key("correlation"), launch.correlation.into());
}

/// Adds the arguments of work that took `ns` nanoseconds.
pub(super) fn add_work(event: &mut EventBuilder, work: &GpuWork, ns: i64) {
    match work.kind {
        GpuWorkKind::Kernel(launch) => add_kernel(event, launch),
        GpuWorkKind::Memcpy(copy) => {
            add_bytes(event, copy.bytes, ns);
            if let Some(peer) = copy.peer {
                event.integer(Key("to device"), peer.into());
            }
        }
        GpuWorkKind::Memset(fill) => add_bytes(event, fill.bytes, ns),
        GpuWorkKind::Synchronization(_) => {}
    }
    event.integer(Key("context"), work.context.into());
    event.integer(Key("correlation"), work.correlation.into());
    if let Some((graph, node)) = work.graph_node {
        event.integer(Key("graph"), graph.into());
        event.integer(Key("graph node"), i64::try_from(node).unwrap_or(i64::MAX));
    }
}

fn add_kernel(event: &mut EventBuilder, launch: KernelLaunch) {
    let extents = |[x, y, z]: [u32; 3]| format!("{x} x {y} x {z}");
    let shared = i64::from(launch.static_shared_bytes) + i64::from(launch.dynamic_shared_bytes);
    event
        .text(Key("grid"), &extents(launch.grid))
        .text(Key("block"), &extents(launch.block))
        .integer(Key("registers per thread"), launch.registers.into())
        .integer(Key("shared memory (bytes)"), shared);
}

/// Bytes in a nanosecond are gigabytes in a second.
fn add_bytes(event: &mut EventBuilder, bytes: u64, ns: i64) {
    event.integer(Key("bytes"), i64::try_from(bytes).unwrap_or(i64::MAX));
    if ns > 0 {
        event.number(Key("GB/s"), bytes as f64 / ns as f64);
    }
}
