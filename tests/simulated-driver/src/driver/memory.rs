//! Memory. Device memory is allocated on the host, so that copies transfer bytes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::{CudaResult, INVALID_VALUE, OUT_OF_MEMORY};
use super::ffi;
use super::state::DriverState;
use super::stream::Queued;
use super::task::{Detail, Effect, Join, MemoryKind, Source, Task, TaskDuration};
use crate::report::ActivityKind;

const ALIGNMENT: usize = 256;

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    Device,
    Managed,
    /// Pinned host memory, which the device can access directly.
    Host,
    /// Memory of the program that the program pinned.
    Registered,
}

/// A range of memory.
#[derive(Debug)]
struct Allocation {
    bytes: usize,
    context: usize,
    device: usize,
    kind: AllocationKind,
    /// The layout it was allocated with; `None` for memory of the program.
    layout: Option<Layout>,
}

/// All allocations, by address.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    alive: BTreeMap<usize, Allocation>,
    pub(crate) created: u64,
}

impl Memory {
    /// Returns the allocation that contains all of a range.
    fn holding(&self, address: usize, bytes: usize) -> Option<&Allocation> {
        let (start, allocation) = self.alive.range(..=address).next_back()?;
        (address.checked_add(bytes)? <= start + allocation.bytes).then_some(allocation)
    }

    pub(crate) fn holds(&self, address: usize, bytes: usize) -> bool {
        self.holding(address, bytes).is_some()
    }

    /// Returns the kind of the memory at `address`.
    pub(crate) fn kind(&self, address: usize) -> MemoryKind {
        match self.holding(address, 1).map(|allocation| allocation.kind) {
            None => MemoryKind::Pageable,
            Some(AllocationKind::Device) => MemoryKind::Device,
            Some(AllocationKind::Managed) => MemoryKind::Managed,
            Some(AllocationKind::Host | AllocationKind::Registered) => MemoryKind::Pinned,
        }
    }

    pub(crate) fn in_use(&self, device: usize) -> u64 {
        let used = self.alive.values().filter(|allocation| {
            allocation.device == device
                && matches!(
                    allocation.kind,
                    AllocationKind::Device | AllocationKind::Managed
                )
        });
        used.map(|allocation| allocation.bytes as u64).sum()
    }

    pub(crate) fn alive(&self) -> u64 {
        self.alive.len() as u64
    }

    fn insert(&mut self, address: usize, allocation: Allocation) {
        self.alive.insert(address, allocation);
        self.created += 1;
    }

    /// Frees the allocation that begins at `address`. Returns `false` if there is none.
    pub(crate) fn free(&mut self, address: usize) -> bool {
        let Some(allocation) = self.alive.remove(&address) else {
            return false;
        };
        if let Some(layout) = allocation.layout {
            // SAFETY: `allocate` got the address from this allocator with this layout. The
            // allocation was removed from `alive`, so it is freed only once.
            unsafe { dealloc(address as *mut u8, layout) };
        }
        true
    }

    pub(crate) fn free_context(&mut self, context: usize) {
        let of_context = self
            .alive
            .iter()
            .filter(|(_, memory)| memory.context == context);
        let addresses: Vec<usize> = of_context.map(|(address, _)| *address).collect();
        for address in addresses {
            self.free(address);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let addresses: Vec<usize> = self.alive.keys().copied().collect();
        for address in addresses {
            self.free(address);
        }
    }
}

/// Which ends of a copy are host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// To be determined from the addresses.
    Either,
}

impl DriverState {
    /// Allocates in the current context. Returns the address.
    pub(crate) fn allocate(&mut self, bytes: usize, kind: AllocationKind) -> CudaResult<usize> {
        let context = self.usable_current()?;
        let device = self.context(context)?.device;
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let all = self.devices[device].settings.bytes;
        if kind == AllocationKind::Device && self.memory.in_use(device) + bytes as u64 > all {
            return Err(OUT_OF_MEMORY);
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| OUT_OF_MEMORY)?;
        // SAFETY: the size of the layout is not zero.
        let address = unsafe { alloc_zeroed(layout) } as usize;
        if address == 0 {
            return Err(OUT_OF_MEMORY);
        }
        let layout = Some(layout);
        self.memory.insert(
            address,
            Allocation {
                bytes,
                context,
                device,
                kind,
                layout,
            },
        );
        Ok(address)
    }

    /// Pins memory of the program.
    pub(crate) fn register(&mut self, address: usize, bytes: usize) -> CudaResult {
        let context = self.usable_current()?;
        let device = self.context(context)?.device;
        if address == 0 || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let kind = AllocationKind::Registered;
        self.memory.insert(
            address,
            Allocation {
                bytes,
                context,
                device,
                kind,
                layout: None,
            },
        );
        Ok(())
    }

    /// Frees the allocation at `address`. Null is ignored.
    pub(crate) fn free(&mut self, address: usize) -> CudaResult {
        if address == 0 || self.memory.free(address) {
            return Ok(());
        }
        self.misuse("no allocation begins at this address", address);
        Err(INVALID_VALUE)
    }

    /// Frees in stream order.
    pub(crate) fn free_async(&mut self, address: usize, stream: usize) -> CudaResult {
        if address != 0 && !self.memory.alive.contains_key(&address) {
            self.misuse("no allocation begins at this address", address);
            return Err(INVALID_VALUE);
        }
        let key = self.stream_key(stream)?;
        let captured = self.stream(key)?.capture.is_some();
        // A graph may be launched again, so memory that it would free is kept until its context
        // ends.
        let effect = if captured {
            Effect::None
        } else {
            Effect::Free { address }
        };
        let mut task = Task::new(ActivityKind::Memory, TaskDuration::Ns(0));
        task.effect = effect;
        self.enqueue(key, task).map(drop)
    }

    /// Allocates in stream order. Returns the address.
    pub(crate) fn allocate_async(&mut self, bytes: usize, stream: usize) -> CudaResult<usize> {
        let key = self.stream_key(stream)?;
        let address = self.allocate(bytes, AllocationKind::Device)?;
        let queued = self.enqueue(key, Task::new(ActivityKind::Memory, TaskDuration::Ns(0)));
        if let Err(code) = queued {
            self.memory.free(address);
            return Err(code);
        }
        Ok(address)
    }

    fn check_device(&mut self, address: usize, bytes: usize) -> CudaResult {
        if bytes > 0 && !self.memory.holds(address, bytes) {
            self.misuse("no allocation holds this range", address);
            return Err(INVALID_VALUE);
        }
        Ok(())
    }

    /// Queues a copy. Returns what the call must wait for: a copy to pageable host memory finishes
    /// before the call returns.
    pub(crate) fn copy(
        &mut self,
        to: usize,
        from: usize,
        bytes: usize,
        direction: Direction,
        stream: usize,
    ) -> CudaResult<Option<Join>> {
        let to_host = direction == Direction::DeviceToHost
            || (direction == Direction::Either && !self.memory.holds(to, bytes));
        let from_host = direction == Direction::HostToDevice
            || (direction == Direction::Either && !self.memory.holds(from, bytes));
        if to == 0 || from == 0 {
            return Err(INVALID_VALUE);
        }
        if !to_host {
            self.check_device(to, bytes)?;
        }
        if !from_host {
            self.check_device(from, bytes)?;
        }
        let key = self.stream_key(stream)?;
        let waits = to_host && !self.memory.holds(to, bytes);
        let keeps = from_host
            && !self.memory.holds(from, bytes)
            && self.stream(key)?.capture.is_none()
            && !self.order(key).pending.is_empty();
        let detail = Detail::Copy {
            from: self.memory.kind(from),
            to: self.memory.kind(to),
            bytes,
            is_async: self.call.contains("Async"),
            peers: std::mem::take(&mut self.peers),
        };
        let from = if keeps {
            Source::Kept(Arc::from(ffi::keep(from, bytes)))
        } else {
            Source::Address(from)
        };
        let duration = TaskDuration::Ns(self.settings.copy_time(bytes));
        let known = [
            self.memory.holds(to, bytes),
            matches!(&from, Source::Address(from) if self.memory.holds(*from, bytes)),
        ];
        let mut task = Task::new(ActivityKind::Copy, duration);
        task.effect = Effect::Copy {
            to,
            from,
            bytes,
            known,
        };
        task.detail = detail;
        Ok(match self.enqueue(key, task)? {
            Queued::Runs(point) if waits => Some(Join::from(point)),
            _ => None,
        })
    }

    /// Queues a fill of `count` items of `width` bytes.
    pub(crate) fn fill(
        &mut self,
        to: usize,
        pattern: u32,
        width: usize,
        count: usize,
        stream: usize,
    ) -> CudaResult<Queued> {
        if !to.is_multiple_of(width) {
            return Err(INVALID_VALUE);
        }
        self.check_device(to, width * count)?;
        let key = self.stream_key(stream)?;
        let duration = TaskDuration::Ns(self.settings.copy_time(width * count));
        let mut task = Task::new(ActivityKind::Fill, duration);
        task.detail = Detail::Fill {
            value: pattern,
            bytes: width * count,
            memory: self.memory.kind(to),
            is_async: self.call.contains("Async"),
        };
        task.effect = Effect::Fill {
            to,
            pattern,
            width,
            count,
        };
        self.enqueue(key, task)
    }
}
