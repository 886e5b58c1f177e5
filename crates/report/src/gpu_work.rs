//! Work on a device: kernels, copies, fills and waits, as plain data.

/// A kernel, a copy, a fill or a wait on a device.
///
/// The numbers are those of CUPTI, NVIDIA's interface for profilers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuWork {
    /// The kind of work.
    pub kind: GpuWorkKind,
    /// The ordinal of its device.
    pub device: u32,
    /// The number of its context.
    pub context: u32,
    /// The number of its stream.
    pub stream: u32,
    /// The number that connects it with the call that launched it. All nodes of a graph have the number of its launch.
    pub correlation: u32,
    /// The number of the graph and of the node in it, for a node of a graph.
    pub graph_node: Option<(u32, u64)>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The kind of work on a device, with its details.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum GpuWorkKind {
    /// A kernel ran.
    Kernel(KernelLaunch),
    /// Memory was copied.
    Memcpy(MemoryCopy),
    /// Memory was filled.
    Memset(MemoryFill),
    /// A thread or a stream waited.
    Synchronization(WaitKind),
}

impl GpuWorkKind {
    /// Returns the name of work that is not a kernel, as traces of `torch.profiler` name it: `Memcpy HtoD (Pinned -> Device)`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Kernel(_) => "(kernel without a name)".to_owned(),
            Self::Memcpy(copy) => {
                let (from, to) = (memory_name(copy.from), memory_name(copy.to));
                format!("Memcpy {} ({from} -> {to})", direction(copy))
            }
            Self::Memset(fill) => format!("Memset ({})", memory_name(fill.memory)),
            Self::Synchronization(wait) => match wait {
                WaitKind::EventSynchronize => "Event Sync",
                WaitKind::StreamWaitEvent => "Stream Wait Event",
                WaitKind::StreamSynchronize => "Stream Sync",
                WaitKind::ContextSynchronize => "Context Sync",
            }
            .to_owned(),
        }
    }
}

fn direction(copy: &MemoryCopy) -> String {
    if copy.peer.is_some() {
        return "PtoP".to_owned();
    }
    let side = |kind| match kind {
        MemoryKind::Pageable | MemoryKind::Pinned => 'H',
        MemoryKind::Array => 'A',
        MemoryKind::Device | MemoryKind::Managed | MemoryKind::Unknown => 'D',
    };
    format!("{}to{}", side(copy.from), side(copy.to))
}

fn memory_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Unknown => "Unknown",
        MemoryKind::Pageable => "Pageable",
        MemoryKind::Pinned => "Pinned",
        MemoryKind::Device => "Device",
        MemoryKind::Array => "Array",
        MemoryKind::Managed => "Managed",
    }
}

impl Default for GpuWorkKind {
    fn default() -> Self {
        Self::Kernel(KernelLaunch::default())
    }
}

/// The launch parameters of a kernel, and the resources that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelLaunch {
    /// The number of blocks in each dimension.
    pub grid: [u32; 3],
    /// The number of threads of a block in each dimension.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block that the kernel declares.
    pub static_shared_bytes: u32,
    /// Bytes of shared memory of a block that the launch adds.
    pub dynamic_shared_bytes: u32,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A copy between memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryCopy {
    /// The number of bytes.
    pub bytes: u64,
    /// Where they came from.
    pub from: MemoryKind,
    /// Where they went.
    pub to: MemoryKind,
    /// The device they went to, if it is another one.
    pub peer: Option<u32>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A fill of memory with one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryFill {
    /// The number of bytes.
    pub bytes: u64,
    /// The memory that was filled.
    pub memory: MemoryKind,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// It is not known.
    #[default]
    Unknown,
    /// Memory of the host that may be paged out.
    Pageable,
    /// Memory of the host that stays in place.
    Pinned,
    /// Memory of a device.
    Device,
    /// An array on a device.
    Array,
    /// Memory that moves between host and devices.
    Managed,
}

/// A kind of wait, named as the function of CUDA that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitKind {
    /// A thread waited for an event.
    EventSynchronize,
    /// A stream waited for an event.
    StreamWaitEvent,
    /// A thread waited for a stream.
    StreamSynchronize,
    /// A thread waited for all work of a context.
    ContextSynchronize,
}
