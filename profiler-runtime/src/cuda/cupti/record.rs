//! Reads CUPTI's activity records.
//!
//! Only fields are read that the first supported release of CUPTI has, and
//! [`Cupti::next`](profiler_cuda_sys::cupti::Cupti::next) steps from record to record.

use profiler_cuda_sys::cupti::kind;
use profiler_cuda_sys::cupti::record::{self, Field, copy, fill, kernel, peer_copy, wait};
use profiler_report::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};

use super::activity::{NO_NAME, WorkActivity};

/// A record in a buffer that CUPTI has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record(*mut u8);

impl Record {
    /// # Safety
    ///
    /// `record` must be a record of CUPTI that is complete up to the end of its first version, and stay so while this
    /// value is in use.
    pub(super) unsafe fn new(record: *mut u8) -> Self {
        Self(record)
    }

    /// Reads a field.
    fn read<T: Copy>(self, field: Field<T>) -> T {
        // SAFETY: all callers read fields of the record's kind, which are inside its first version. The caller of `new`
        // promises that one to be there. Fields are integers, which have no invalid values.
        unsafe { self.0.add(field.offset()).cast::<T>().read_unaligned() }
    }

    pub(super) fn kind(self) -> u32 {
        self.read(record::KIND)
    }

    fn is_kernel(self) -> bool {
        matches!(self.kind(), kind::CONCURRENT_KERNEL | kind::KERNEL)
    }

    /// Returns the address of a kernel's name; `None` for other records.
    pub(super) fn name(self) -> Option<usize> {
        self.is_kernel().then(|| self.read(kernel::NAME))
    }

    /// Replaces the address of a kernel's name by its number.
    pub(super) fn set_name(self, number: u32) {
        if self.is_kernel() {
            // SAFETY: as in `read`; CUPTI has given the buffer back, so that no other thread reads the record.
            unsafe {
                self.0
                    .add(kernel::NAME.offset())
                    .cast::<usize>()
                    .write_unaligned(number as usize);
            }
        }
    }

    /// Returns what the record says; `None` for a kind that is not known. A kernel's name must have been replaced.
    pub(super) fn activity(self) -> Option<WorkActivity> {
        let (start, end, name, details) = match self.kind() {
            kind::CONCURRENT_KERNEL | kind::KERNEL => self.kernel(),
            kind::MEMCPY => self.copy(None),
            kind::MEMCPY_PEER => self.copy(Some(self.read(peer_copy::TO_DEVICE))),
            kind::MEMSET => self.fill(),
            kind::SYNCHRONIZATION => self.wait()?,
            _ => return None,
        };
        Some(WorkActivity {
            name,
            start,
            end,
            details,
        })
    }

    fn kernel(self) -> (u64, u64, u32, GpuWork) {
        let size = |field: Field<i32>| self.read(field).cast_unsigned();
        let launch = KernelLaunch {
            grid: [kernel::GRID_X, kernel::GRID_Y, kernel::GRID_Z].map(size),
            block: [kernel::BLOCK_X, kernel::BLOCK_Y, kernel::BLOCK_Z].map(size),
            registers: self.read(kernel::REGISTERS).into(),
            static_shared_bytes: size(kernel::STATIC_SHARED_BYTES),
            dynamic_shared_bytes: size(kernel::DYNAMIC_SHARED_BYTES),
            non_exhaustive: (),
        };
        let work = GpuWork {
            kind: GpuWorkKind::Kernel(launch),
            device: self.read(kernel::DEVICE),
            context: self.read(kernel::CONTEXT),
            stream: self.read(kernel::STREAM),
            correlation: self.read(kernel::CORRELATION),
            graph_node: self.graph_node(kernel::GRAPH, kernel::GRAPH_NODE),
            non_exhaustive: (),
        };
        let name = u32::try_from(self.read(kernel::NAME)).unwrap_or(NO_NAME);
        (self.read(kernel::START), self.read(kernel::END), name, work)
    }

    /// Reads a copy, to another device if `peer` names one.
    fn copy(self, peer: Option<u32>) -> (u64, u64, u32, GpuWork) {
        // The fields of both records are the same up to those of the two devices.
        let (correlation, graph, node) = if peer.is_some() {
            (
                peer_copy::CORRELATION,
                peer_copy::GRAPH,
                peer_copy::GRAPH_NODE,
            )
        } else {
            (copy::CORRELATION, copy::GRAPH, copy::GRAPH_NODE)
        };
        let copied = MemoryCopy {
            bytes: self.read(copy::BYTES),
            from: memory_kind(self.read(copy::FROM).into()),
            to: memory_kind(self.read(copy::TO).into()),
            peer,
            non_exhaustive: (),
        };
        let work = GpuWork {
            kind: GpuWorkKind::Memcpy(copied),
            device: self.read(copy::DEVICE),
            context: self.read(copy::CONTEXT),
            stream: self.read(copy::STREAM),
            correlation: self.read(correlation),
            graph_node: self.graph_node(graph, node),
            non_exhaustive: (),
        };
        (self.read(copy::START), self.read(copy::END), NO_NAME, work)
    }

    fn fill(self) -> (u64, u64, u32, GpuWork) {
        let filled = MemoryFill {
            bytes: self.read(fill::BYTES),
            memory: memory_kind(self.read(fill::MEMORY)),
            non_exhaustive: (),
        };
        let work = GpuWork {
            kind: GpuWorkKind::Memset(filled),
            device: self.read(fill::DEVICE),
            context: self.read(fill::CONTEXT),
            stream: self.read(fill::STREAM),
            correlation: self.read(fill::CORRELATION),
            graph_node: self.graph_node(fill::GRAPH, fill::GRAPH_NODE),
            non_exhaustive: (),
        };
        (self.read(fill::START), self.read(fill::END), NO_NAME, work)
    }

    fn wait(self) -> Option<(u64, u64, u32, GpuWork)> {
        let kind = match self.read(wait::TYPE) {
            record::WAIT_EVENT => WaitKind::EventSynchronize,
            record::WAIT_STREAM_EVENT => WaitKind::StreamWaitEvent,
            record::WAIT_STREAM => WaitKind::StreamSynchronize,
            record::WAIT_CONTEXT => WaitKind::ContextSynchronize,
            _ => return None,
        };
        let work = GpuWork {
            kind: GpuWorkKind::Synchronization(kind),
            // The record does not say; the windows take it from other records of the context.
            device: 0,
            context: self.read(wait::CONTEXT),
            stream: self.read(wait::STREAM),
            correlation: self.read(wait::CORRELATION),
            graph_node: None,
            non_exhaustive: (),
        };
        Some((self.read(wait::START), self.read(wait::END), NO_NAME, work))
    }

    fn graph_node(self, graph: Field<u32>, node: Field<u64>) -> Option<(u32, u64)> {
        let (graph, node) = (self.read(graph), self.read(node));
        (graph != 0 || node != 0).then_some((graph, node))
    }
}

/// Returns a kind of memory by CUPTI's number of it: a `CUpti_ActivityMemoryKind`.
fn memory_kind(number: u16) -> MemoryKind {
    match number {
        record::MEMORY_PAGEABLE => MemoryKind::Pageable,
        record::MEMORY_PINNED => MemoryKind::Pinned,
        record::MEMORY_DEVICE | record::MEMORY_DEVICE_STATIC => MemoryKind::Device,
        record::MEMORY_ARRAY => MemoryKind::Array,
        record::MEMORY_MANAGED | record::MEMORY_MANAGED_STATIC => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record under construction, in memory that is aligned as CUPTI's buffers are.
    pub(in super::super) struct Bytes(pub(in super::super) [u64; 31]);

    impl Bytes {
        pub(in super::super) fn of(kind: u32) -> Self {
            // Whatever is not read must not matter.
            let mut bytes = Self([0xA5A5_A5A5_A5A5_A5A5; 31]);
            bytes.put(0, kind);
            bytes
        }

        pub(in super::super) fn put<T: Copy>(&mut self, offset: usize, value: T) {
            assert!(offset + size_of::<T>() <= size_of_val(&self.0));
            let start = self.0.as_mut_ptr().cast::<u8>();
            // SAFETY: inside the array, as asserted.
            unsafe { start.add(offset).cast::<T>().write_unaligned(value) };
        }

        fn activity(&mut self) -> Option<WorkActivity> {
            // SAFETY: longer than any record, and alive.
            unsafe { Record::new(self.0.as_mut_ptr().cast()) }.activity()
        }
    }

    #[test]
    fn a_kernel_is_read_from_the_part_that_all_versions_share() {
        let mut bytes = Bytes::of(kind::CONCURRENT_KERNEL);
        bytes.put(6, 40_u16);
        bytes.put(16, 1_000_u64);
        bytes.put(24, 3_500_u64);
        for (place, value) in [
            (40, 1_u32),
            (44, 2),
            (48, 13),
            (92, 77),
            (156, 0),
            (76, 16),
            (80, 32),
        ] {
            bytes.put(place, value);
        }
        bytes.put(144, 0_u64);
        for (index, place) in (1_u32..).zip([52, 56, 60, 64, 68, 72]) {
            bytes.put(place, index);
        }
        bytes.put(kernel::NAME.offset(), 5_u64);
        let kernel = KernelLaunch {
            grid: [1, 2, 3],
            block: [4, 5, 6],
            registers: 40,
            static_shared_bytes: 16,
            dynamic_shared_bytes: 32,
            non_exhaustive: (),
        };
        let expected = WorkActivity {
            name: 5,
            start: 1_000,
            end: 3_500,
            details: GpuWork {
                kind: GpuWorkKind::Kernel(kernel),
                device: 1,
                context: 2,
                stream: 13,
                correlation: 77,
                graph_node: None,
                non_exhaustive: (),
            },
        };
        assert_eq!(bytes.activity(), Some(expected));
        bytes.put(156, 8_u32);
        bytes.put(144, 9_u64);
        let node = bytes.activity().and_then(|read| read.details.graph_node);
        assert_eq!(node, Some((8, 9)));
    }

    #[test]
    fn the_address_of_a_name_becomes_its_number() {
        let mut bytes = Bytes::of(kind::CONCURRENT_KERNEL);
        bytes.put(kernel::NAME.offset(), 0x7fff_0000_1234_u64);
        // SAFETY: as in `activity`.
        let record = unsafe { Record::new(bytes.0.as_mut_ptr().cast()) };
        assert_eq!(record.name(), Some(0x7fff_0000_1234));
        record.set_name(3);
        assert_eq!(record.activity().map(|read| read.name), Some(3));
        let mut copy = Bytes::of(kind::MEMCPY);
        // SAFETY: as above.
        let record = unsafe { Record::new(copy.0.as_mut_ptr().cast()) };
        let before = copy.0;
        record.set_name(3);
        assert_eq!((record.name(), copy.0), (None, before));
    }

    #[test]
    fn copies_and_fills_have_bytes_and_kinds_of_memory() {
        let mut bytes = Bytes::of(kind::MEMCPY);
        for (place, value) in [(4, 1_u8), (5, 2), (6, 3)] {
            bytes.put(place, value);
        }
        bytes.put(8, 4_096_u64);
        bytes.put(44, 21_u32);
        bytes.put(72, 0_u32);
        bytes.put(64, 0_u64);
        let copy = MemoryCopy {
            bytes: 4_096,
            from: MemoryKind::Pinned,
            to: MemoryKind::Device,
            peer: None,
            non_exhaustive: (),
        };
        let read = bytes.activity().expect("a copy").details;
        assert_eq!(
            (read.kind, read.correlation),
            (GpuWorkKind::Memcpy(copy), 21)
        );

        let mut bytes = Bytes::of(kind::MEMCPY_PEER);
        bytes.put(5, 3_u8);
        bytes.put(6, 3_u8);
        bytes.put(8, 64_u64);
        bytes.put(44, 0_u32);
        bytes.put(52, 1_u32);
        bytes.put(60, 22_u32);
        let read = bytes.activity().expect("a copy").details;
        let GpuWorkKind::Memcpy(copy) = read.kind else {
            panic!("{read:?}");
        };
        assert_eq!((copy.peer, copy.bytes, read.correlation), (Some(1), 64, 22));

        let mut bytes = Bytes::of(kind::MEMSET);
        bytes.put(8, 512_u64);
        bytes.put(44, 23_u32);
        bytes.put(50, 5_u16);
        let fill = MemoryFill {
            bytes: 512,
            memory: MemoryKind::Managed,
            non_exhaustive: (),
        };
        let read = bytes.activity().expect("a fill").details;
        assert_eq!(
            (read.kind, read.correlation),
            (GpuWorkKind::Memset(fill), 23)
        );
    }

    #[test]
    fn a_wait_says_for_what() {
        for (number, wait) in [
            (1_u32, Some(WaitKind::EventSynchronize)),
            (2, Some(WaitKind::StreamWaitEvent)),
            (3, Some(WaitKind::StreamSynchronize)),
            (4, Some(WaitKind::ContextSynchronize)),
            (99, None),
        ] {
            let mut bytes = Bytes::of(kind::SYNCHRONIZATION);
            bytes.put(4, number);
            bytes.put(8, 10_u64);
            bytes.put(16, 30_u64);
            bytes.put(24, 9_u32);
            let read = bytes.activity();
            let expected = wait.map(GpuWorkKind::Synchronization);
            assert_eq!(read.map(|read| read.details.kind), expected, "{number}");
            if let Some(read) = read {
                assert_eq!(
                    (read.start, read.end, read.details.correlation),
                    (10, 30, 9)
                );
            }
        }
    }

    #[test]
    fn an_unknown_kind_is_left_out() {
        assert_eq!(Bytes::of(51).activity(), None);
    }
}
