//! The categories and arguments of kernels, copies, fills and waits, as PyTorch's profiler writes them.

use std::io::Write;

use super::event_writer::{EventLine, Quoted, write_list};
use super::names::STEP_NAMES;
use super::occupancy::Fill;
use super::times::write_whole;
use crate::cuda::DeviceProperties;
use crate::gpu_work::{GpuWorkKind, KernelLaunch};
use crate::report::text::json::string;
use crate::session::{Trace, WorkRecord};

/// The names of work, as JSON strings.
pub(super) struct WorkNames(Vec<String>);

impl WorkNames {
    pub(super) fn new(trace: &Trace) -> Self {
        let (step, spelled) = STEP_NAMES;
        let names = trace.work.names.iter();
        Self(
            names
                .map(|name| string(&name.replace(step, spelled)))
                .collect(),
        )
    }

    /// Returns the category and the name of some work.
    pub(super) fn of(&self, work: &WorkRecord) -> (&'static str, Quoted<'_>) {
        let name = self.0.get(work.name as usize);
        let category = match work.details.kind {
            GpuWorkKind::Kernel(_) => "kernel",
            GpuWorkKind::Memcpy(_) => "gpu_memcpy",
            GpuWorkKind::Memset(_) => "gpu_memset",
            GpuWorkKind::Synchronization(_) => "cuda_sync",
        };
        let name = name.map_or(r#""(unknown)""#, |name| name);
        (category, Quoted::new(name))
    }
}

/// Adds the arguments that depend on the kind of work; `ns` is how long it took, and `devices` holds the properties of the
/// devices by ordinal.
pub(super) fn with_fields<'w, W: Write>(
    event: EventLine<'w, W>,
    work: &WorkRecord,
    ns: i64,
    devices: &[DeviceProperties],
) -> EventLine<'w, W> {
    let event = match work.details.kind {
        GpuWorkKind::Kernel(launch) => {
            let device = devices.get(work.details.device as usize);
            let fill = device.and_then(|device| Fill::of(device, launch));
            with_fill(with_launch(event, launch), fill)
        }
        GpuWorkKind::Memcpy(copy) => {
            let event = with_bytes(event, copy.bytes, ns);
            match copy.peer {
                Some(peer) => event
                    .whole("fromDevice", work.details.device.into())
                    .whole("toDevice", peer.into()),
                None => event,
            }
        }
        GpuWorkKind::Memset(fill) => with_bytes(event, fill.bytes, ns),
        GpuWorkKind::Synchronization(_) => event,
    };
    match work.details.graph_node {
        Some((graph, node)) => event
            .whole("graph id", graph.into())
            .whole("graph node id", node),
        None => event,
    }
}

fn with_launch<W: Write>(event: EventLine<'_, W>, launch: KernelLaunch) -> EventLine<'_, W> {
    let shared = u64::from(launch.static_shared_bytes) + u64::from(launch.dynamic_shared_bytes);
    event
        .whole("registers per thread", launch.registers.into())
        .whole("shared memory", shared)
        .json("grid", |out| write_extents(out, launch.grid))
        .json("block", |out| write_extents(out, launch.block))
}

fn with_fill<W: Write>(event: EventLine<'_, W>, fill: Option<Fill>) -> EventLine<'_, W> {
    let Some(fill) = fill else {
        return event;
    };
    let event = event
        .number("blocks per SM", fill.blocks_per_sm)
        .number("warps per SM", fill.warps_per_sm);
    match fill.occupancy {
        Some(percent) => event.whole("est. achieved occupancy %", percent),
        None => event,
    }
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
