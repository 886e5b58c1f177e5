//! The parameters of kernels, copies and fills, as PyTorch writes them.

use profiler_report::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};

use super::event::{Category, Event, Id};

/// The arguments of work on a device.
#[derive(Debug, Default)]
pub(super) struct WorkArgs {
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Option<u32>,
    pub(super) shared_bytes: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) device: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) stream: Option<u32>,
    pub(super) from_device: Option<u32>,
    pub(super) to_device: Option<u32>,
    pub(super) graph: Option<u32>,
    pub(super) graph_node: Option<u64>,
}

/// Returns what an event of a device did. `None` if the event does not say: its time still counts.
pub(super) fn work(event: &Event<'_>) -> Option<GpuWork> {
    let args = &event.args.work;
    let kind = match event.category {
        Category::Kernel => {
            let dynamic = event.args.own.dynamic_shared_bytes;
            GpuWorkKind::Kernel(kernel(args, dynamic.unwrap_or_default())?)
        }
        Category::Memcpy => GpuWorkKind::Memcpy(copy(args, &event.name)?),
        Category::Memset => GpuWorkKind::Memset(fill(args, &event.name)?),
        _ => return None,
    };
    let correlation = event.args.own.correlation;
    let correlation = correlation.or(event.args.correlation);
    let correlation = correlation.and_then(|id| u32::try_from(id).ok());
    // Kernels outside of graphs have the node 0 in files of PyTorch.
    let node = args.graph_node.filter(|node| *node != 0);
    Some(GpuWork {
        kind,
        device: args.device.unwrap_or_default(),
        context: args.context.unwrap_or_default(),
        stream: args.stream.unwrap_or_default(),
        correlation: correlation.unwrap_or_default(),
        graph_node: node.map(|node| (args.graph.unwrap_or_default(), node)),
        ..GpuWork::default()
    })
}

fn kernel(args: &WorkArgs, dynamic_shared_bytes: u32) -> Option<KernelLaunch> {
    // The file has the sum of both kinds.
    let shared = args.shared_bytes.unwrap_or_default();
    Some(KernelLaunch {
        grid: args.grid?,
        block: args.block?,
        registers: args.registers.unwrap_or_default(),
        static_shared_bytes: shared.saturating_sub(dynamic_shared_bytes),
        dynamic_shared_bytes,
        ..KernelLaunch::default()
    })
}

/// Returns what an event waited for; `None` if it is another kind of wait.
pub(super) fn wait(event: &Event<'_>) -> Option<GpuWork> {
    let args = &event.args;
    let kind = GpuWorkKind::Synchronization(match &*event.name {
        "Event Sync" => WaitKind::EventSynchronize,
        "Stream Wait Event" => WaitKind::StreamWaitEvent,
        "Stream Sync" => WaitKind::StreamSynchronize,
        "Context Sync" => WaitKind::ContextSynchronize,
        _ => return None,
    });
    let device = match &event.process {
        Id::Number(device) => u32::try_from(*device).ok(),
        _ => None,
    };
    let device = args.own.track.ordinal.or(args.work.device).or(device);
    let stream = args.own.waited_for.or(args.work.stream);
    Some(GpuWork {
        kind,
        device: device.unwrap_or_default(),
        context: args.work.context.unwrap_or_default(),
        stream: stream.unwrap_or_default(),
        ..GpuWork::default()
    })
}

/// The name is `Memcpy HtoD (Pageable -> Device)`.
fn copy(args: &WorkArgs, name: &str) -> Option<MemoryCopy> {
    let kinds = in_parentheses(name).and_then(|kinds| kinds.split_once(" -> "));
    let (from, to) = kinds
        .map(|(from, to)| (memory(from), memory(to)))
        .unwrap_or_default();
    Some(MemoryCopy {
        bytes: args.bytes?,
        from,
        to,
        peer: args.to_device.filter(|to| args.from_device != Some(*to)),
        ..MemoryCopy::default()
    })
}

/// The name is `Memset (Device)`.
fn fill(args: &WorkArgs, name: &str) -> Option<MemoryFill> {
    Some(MemoryFill {
        bytes: args.bytes?,
        memory: in_parentheses(name).map_or_else(MemoryKind::default, memory),
        ..MemoryFill::default()
    })
}

fn in_parentheses(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('(')?;
    rest.strip_suffix(')')
}

fn memory(name: &str) -> MemoryKind {
    match name {
        "Pageable" => MemoryKind::Pageable,
        "Pinned" => MemoryKind::Pinned,
        "Device" => MemoryKind::Device,
        "Array" => MemoryKind::Array,
        "Managed" | "Unified" => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}
