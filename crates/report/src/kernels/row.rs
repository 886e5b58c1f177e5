//! One kernel, or one direction of copies.

use crate::gpu_work::{KernelLaunch, MemoryCopy, MemoryFill, MemoryKind};
use crate::times::Times;

/// All runs of one kernel, or all copies or fills of one direction, that one scope launched.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KernelRow {
    /// The whole name, demangled.
    pub name: String,
    /// The name as the table shows it: without return type and parameters, and as much of path and template arguments as
    /// no other kernel of the window has.
    pub short: String,
    /// Times on the device: calls are runs, totals are without gaps, and the percentages are of all work of the scope.
    pub times: Times,
    /// The kind of work, with its parameters.
    pub kind: KernelRowKind,
}

/// The kind of work of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum KernelRowKind {
    /// A kernel ran.
    Kernel(KernelUse),
    /// Memory was copied.
    Copy(CopyUse),
    /// Memory was filled.
    Fill(FillUse),
    /// It is not known, as in files that do not say.
    #[default]
    Unknown,
}

/// The smallest and the largest value of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MinMax<T> {
    /// The smallest one.
    pub min: T,
    /// The largest one.
    pub max: T,
}

impl<T: Copy> MinMax<T> {
    fn of(value: T) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    /// Extends the range to a value. `key` orders values.
    fn add<K: Ord>(&mut self, value: T, key: impl Fn(T) -> K) {
        if key(value) < key(self.min) {
            self.min = value;
        }
        if key(value) > key(self.max) {
            self.max = value;
        }
    }
}

/// The launch parameters and resources of the runs of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelUse {
    /// The grids with the fewest and the most blocks.
    pub grid: MinMax<[u32; 3]>,
    /// The blocks with the fewest and the most threads.
    pub block: MinMax<[u32; 3]>,
    /// Registers of a thread.
    pub registers: MinMax<u32>,
    /// Bytes of shared memory of a block, declared by the kernel and added by the launch.
    pub shared_bytes: MinMax<u32>,
}

impl KernelUse {
    pub(super) fn of(launch: &KernelLaunch) -> Self {
        Self {
            grid: MinMax::of(launch.grid),
            block: MinMax::of(launch.block),
            registers: MinMax::of(launch.registers),
            shared_bytes: MinMax::of(shared_bytes(launch)),
        }
    }

    pub(super) fn add(&mut self, launch: &KernelLaunch) {
        let size = |extent: [u32; 3]| -> u128 { extent.into_iter().map(u128::from).product() };
        self.grid.add(launch.grid, size);
        self.block.add(launch.block, size);
        self.registers.add(launch.registers, |count| count);
        self.shared_bytes.add(shared_bytes(launch), |bytes| bytes);
    }
}

fn shared_bytes(launch: &KernelLaunch) -> u32 {
    let dynamic = launch.dynamic_shared_bytes;
    launch.static_shared_bytes.saturating_add(dynamic)
}

/// Copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyUse {
    /// All bytes.
    pub bytes: u64,
    /// Where they came from.
    pub from: MemoryKind,
    /// Where they went.
    pub to: MemoryKind,
}

impl CopyUse {
    pub(super) fn of(copy: &MemoryCopy) -> Self {
        Self {
            bytes: copy.bytes,
            from: copy.from,
            to: copy.to,
        }
    }
}

/// Fills of one kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FillUse {
    /// All bytes.
    pub bytes: u64,
    /// The memory that was filled.
    pub memory: MemoryKind,
}

impl FillUse {
    pub(super) fn of(fill: &MemoryFill) -> Self {
        Self {
            bytes: fill.bytes,
            memory: fill.memory,
        }
    }
}

impl KernelRow {
    /// Returns the bytes of copies and fills.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match self.kind {
            KernelRowKind::Copy(copy) => Some(copy.bytes),
            KernelRowKind::Fill(fill) => Some(fill.bytes),
            _ => None,
        }
    }

    /// Returns how fast copies and fills were, in 10⁹ bytes per second of their own time.
    #[must_use]
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        let bytes = self.bytes()?;
        (self.times.total_ns > 0.0).then(|| bytes as f64 / self.times.total_ns)
    }
}
