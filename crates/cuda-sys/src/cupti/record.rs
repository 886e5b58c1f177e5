//! The fields of CUPTI's activity records.
//!
//! Each release of CUPTI has longer records, and none has moved a field. So the fields stand where the first supported
//! release has them. Only the library knows how long its records are: see [`Cupti::next`](super::Cupti::next).

use std::fmt;
use std::marker::PhantomData;

use crate::declare::constants;

/// The place of a field in a record: an integer of type `T`.
pub struct Field<T> {
    offset: usize,
    integer: PhantomData<fn() -> T>,
}

impl<T> Field<T> {
    const fn at(offset: usize) -> Self {
        Self {
            offset,
            integer: PhantomData,
        }
    }

    /// Returns the bytes before the field.
    #[inline]
    pub const fn offset(self) -> usize {
        self.offset
    }
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

impl<T> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.offset)
    }
}

/// The kind of a record: a `CUpti_ActivityKind`. All records begin with it.
pub const KIND: Field<u32> = Field::at(0);

/// Declares where a kind of record has its fields. The number is that of the first release's structure: later ones have
/// larger numbers.
macro_rules! records {
    ($(
        $(#[$meta:meta])*
        mod $module:ident = $record:ident from $first:literal {
            $($(#[$doc:meta])* $name:ident = $theirs:ident: $type:ty, $offset:literal;)*
        }
    )*) => {
        $(
            $(#[$meta])*
            pub mod $module {
                use super::Field;

                $(
                    #[doc = concat!("`", stringify!($theirs), "`.")]
                    $(#[$doc])*
                    pub const $name: Field<$type> = Field::at($offset);
                )*
            }
        )*

        /// Returns the fields as they are declared here, for each structure that the headers have for a record.
        #[cfg(test)]
        pub(crate) fn declared(headers: &header_check::Headers) -> Vec<header_check::Item> {
            let mut items = Vec::new();
            $(
                for record in headers.numbered(stringify!($record), $first) {
                    $(items.push(header_check::Item::field::<$type>(
                        &record,
                        stringify!($theirs),
                        $offset,
                    ));)*
                }
            )*
            items
        }
    };
}

records! {
    /// A kernel.
    mod kernel = CUpti_ActivityKernel from 8 {
        REGISTERS = registersPerThread: u16, 6;
        START = start: u64, 16;
        END = end: u64, 24;
        DEVICE = deviceId: u32, 40;
        CONTEXT = contextId: u32, 44;
        STREAM = streamId: u32, 48;
        GRID_X = gridX: i32, 52;
        GRID_Y = gridY: i32, 56;
        GRID_Z = gridZ: i32, 60;
        BLOCK_X = blockX: i32, 64;
        BLOCK_Y = blockY: i32, 68;
        BLOCK_Z = blockZ: i32, 72;
        STATIC_SHARED_BYTES = staticSharedMemory: i32, 76;
        DYNAMIC_SHARED_BYTES = dynamicSharedMemory: i32, 80;
        CORRELATION = correlationId: u32, 92;
        /// The address of a text that belongs to CUPTI.
        NAME = name: usize, 104;
        GRAPH_NODE = graphNodeId: u64, 144;
        GRAPH = graphId: u32, 156;
    }
    /// A copy on one device, or between a device and the host.
    mod copy = CUpti_ActivityMemcpy from 5 {
        FROM = srcKind: u8, 5;
        TO = dstKind: u8, 6;
        BYTES = bytes: u64, 8;
        START = start: u64, 16;
        END = end: u64, 24;
        DEVICE = deviceId: u32, 32;
        CONTEXT = contextId: u32, 36;
        STREAM = streamId: u32, 40;
        CORRELATION = correlationId: u32, 44;
        GRAPH_NODE = graphNodeId: u64, 64;
        GRAPH = graphId: u32, 72;
    }
    /// A copy between two devices.
    mod peer_copy = CUpti_ActivityMemcpyPtoP from 4 {
        FROM = srcKind: u8, 5;
        TO = dstKind: u8, 6;
        BYTES = bytes: u64, 8;
        START = start: u64, 16;
        END = end: u64, 24;
        DEVICE = deviceId: u32, 32;
        CONTEXT = contextId: u32, 36;
        STREAM = streamId: u32, 40;
        TO_DEVICE = dstDeviceId: u32, 52;
        CORRELATION = correlationId: u32, 60;
        GRAPH_NODE = graphNodeId: u64, 72;
        GRAPH = graphId: u32, 80;
    }
    /// A fill.
    mod fill = CUpti_ActivityMemset from 4 {
        BYTES = bytes: u64, 8;
        START = start: u64, 16;
        END = end: u64, 24;
        DEVICE = deviceId: u32, 32;
        CONTEXT = contextId: u32, 36;
        STREAM = streamId: u32, 40;
        CORRELATION = correlationId: u32, 44;
        MEMORY = memoryKind: u16, 50;
        GRAPH_NODE = graphNodeId: u64, 64;
        GRAPH = graphId: u32, 72;
    }
    /// A wait of the host.
    mod wait = CUpti_ActivitySynchronization from 1 {
        /// See [`WAIT_EVENT`](super::WAIT_EVENT) and those after it.
        TYPE = type: u32, 4;
        START = start: u64, 8;
        END = end: u64, 16;
        CORRELATION = correlationId: u32, 24;
        CONTEXT = contextId: u32, 28;
        STREAM = streamId: u32, 32;
    }
}

constants! {
    /// The host waits for an event.
    pub const WAIT_EVENT: u32 = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE(1);
    /// A stream waits for an event.
    pub const WAIT_STREAM_EVENT: u32 = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT(2);
    /// The host waits for a stream.
    pub const WAIT_STREAM: u32 = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE(3);
    /// The host waits for a context.
    pub const WAIT_CONTEXT: u32 = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE(4);
    /// Memory of the host.
    pub const MEMORY_PAGEABLE: u16 = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE(1);
    /// Pinned memory of the host.
    pub const MEMORY_PINNED: u16 = CUPTI_ACTIVITY_MEMORY_KIND_PINNED(2);
    /// Memory of a device.
    pub const MEMORY_DEVICE: u16 = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE(3);
    /// An array of a device.
    pub const MEMORY_ARRAY: u16 = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY(4);
    /// Managed memory.
    pub const MEMORY_MANAGED: u16 = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED(5);
    /// A static variable of a device.
    pub const MEMORY_DEVICE_STATIC: u16 = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC(6);
    /// A static variable in managed memory.
    pub const MEMORY_MANAGED_STATIC: u16 = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC(7);
}
