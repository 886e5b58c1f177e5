//! The parameters of kernels, copies and fills, as PyTorch writes them.

use profiler_runtime::report::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind,
};

use super::event::{Category, Event};

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
    pub(super) graph: Option<u32>,
    pub(super) graph_node: Option<u64>,
}

/// Returns what an event of a device did. `None` if the event does not say: its time still counts.
pub(super) fn work(event: &Event) -> Option<GpuWork> {
    let args = &event.args.work;
    let mut work = GpuWork::default();
    work.kind = match event.category {
        Category::Kernel => GpuWorkKind::Kernel(kernel(args)?),
        Category::Memcpy => GpuWorkKind::Memcpy(copy(args, &event.name)?),
        Category::Memset => GpuWorkKind::Memset(fill(args, &event.name)?),
        _ => return None,
    };
    work.device = args.device.unwrap_or_default();
    work.context = args.context.unwrap_or_default();
    work.stream = args.stream.unwrap_or_default();
    let correlation = event.args.converted.correlation;
    let correlation = correlation.or(event.args.correlation);
    let correlation = correlation.and_then(|id| u32::try_from(id).ok());
    work.correlation = correlation.unwrap_or_default();
    // Kernels outside of graphs have the node 0 in files of PyTorch.
    let node = args.graph_node.filter(|node| *node != 0);
    work.graph_node = node.map(|node| (args.graph.unwrap_or_default(), node));
    Some(work)
}

fn kernel(args: &WorkArgs) -> Option<KernelLaunch> {
    let mut launch = KernelLaunch::default();
    launch.grid = args.grid?;
    launch.block = args.block?;
    launch.registers = args.registers.unwrap_or_default();
    // The file has the sum of both kinds.
    launch.static_shared_bytes = args.shared_bytes.unwrap_or_default();
    Some(launch)
}

/// The name is `Memcpy HtoD (Pageable -> Device)`.
fn copy(args: &WorkArgs, name: &str) -> Option<MemoryCopy> {
    let mut copy = MemoryCopy::default();
    copy.bytes = args.bytes?;
    if let Some((from, to)) = in_parentheses(name).and_then(|kinds| kinds.split_once(" -> ")) {
        (copy.from, copy.to) = (memory(from), memory(to));
    }
    Some(copy)
}

/// The name is `Memset (Device)`.
fn fill(args: &WorkArgs, name: &str) -> Option<MemoryFill> {
    let mut fill = MemoryFill::default();
    fill.bytes = args.bytes?;
    fill.memory = in_parentheses(name).map_or_else(MemoryKind::default, memory);
    Some(fill)
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
