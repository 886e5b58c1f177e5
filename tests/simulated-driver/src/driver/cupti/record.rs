//! The records of what the devices and the driver did.

use std::ffi::CStr;

use super::call::Origin;
use super::ids::kind;
use super::layout::{self, Fields};
use super::state::{self, Cupti};
use crate::driver::kernel::LaunchDims;
use crate::driver::task::{Detail, Location, Task};
use crate::report::ActivityKind;

/// The content of a record beyond when and where.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Kernel {
        name: &'static CStr,
        shape: LaunchDims,
        order: u64,
    },
    Copy {
        kind: u8,
        from: u8,
        to: u8,
        is_async: bool,
        bytes: u64,
        /// Device and context of the source and of the destination, of a copy between contexts.
        peers: Option<[(u32, u32); 2]>,
    },
    Fill {
        value: u32,
        bytes: u64,
        memory: u16,
        is_async: bool,
    },
    Synchronization {
        kind: u32,
        event: u32,
        code: u32,
    },
    Overhead {
        kind: u32,
    },
    Unknown,
}

/// One record. Times are in nanoseconds on the driver's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The number of the thread that made the call.
    pub(super) thread: u64,
    /// The difference of the record's time to the driver's.
    pub(super) offset: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) correlation: u32,
    pub(super) graph: u32,
    pub(super) node: u64,
    pub(super) body: Body,
}

impl Record {
    pub(super) fn kind(&self) -> u32 {
        match self.body {
            Body::Kernel { .. } => kind::CONCURRENT_KERNEL,
            Body::Copy { peers: None, .. } => kind::MEMCPY,
            Body::Copy { .. } => kind::MEMCPY2,
            Body::Fill { .. } => kind::MEMSET,
            Body::Synchronization { .. } => kind::SYNCHRONIZATION,
            Body::Overhead { .. } => kind::OVERHEAD,
            Body::Unknown => kind::UNKNOWN,
        }
    }

    fn size(&self, cupti: &Cupti) -> Option<usize> {
        match self.body {
            Body::Unknown => Some(layout::UNKNOWN_SIZE),
            _ => layout::size(self.kind(), cupti.version, cupti.is_11_8),
        }
    }

    /// Returns the record as bytes. An incomplete record has no end.
    pub(super) fn encode(
        &self,
        cupti: &Cupti,
        is_complete: bool,
        is_timed: bool,
    ) -> Option<Fields> {
        let size = self.size(cupti)?;
        let mut fields = Fields::new(self.kind(), size);
        let start = if is_timed {
            cupti.told(self.start.wrapping_add(self.offset))
        } else {
            0
        };
        let end = if is_timed && is_complete {
            cupti.told(self.end.wrapping_add(self.offset))
        } else {
            0
        };
        let times = |fields: &mut Fields, at: usize| {
            fields.long(at, start);
            fields.long(at + 8, end);
        };
        match self.body {
            Body::Kernel { name, shape, order } => {
                fields.half(6, 32);
                times(&mut fields, 16);
                fields.long(32, end);
                fields.words(40, [self.device, self.context, self.stream]);
                fields.words(52, shape.grid);
                fields.words(64, shape.block);
                fields.word(80, shape.shared_bytes);
                fields.word(92, self.correlation);
                fields.long(96, order);
                fields.long(104, name.as_ptr() as u64);
                fields.long(144, self.node);
                fields.word(156, self.graph);
            }
            Body::Copy {
                kind,
                from,
                to,
                is_async,
                bytes,
                peers,
            } => {
                for (at, value) in [kind, from, to, u8::from(is_async)].into_iter().enumerate() {
                    fields.byte(4 + at, value);
                }
                fields.long(8, bytes);
                times(&mut fields, 16);
                fields.words(32, [self.device, self.context, self.stream]);
                // The fields of a copy between contexts are moved by those of its two ends.
                let after = match peers {
                    None => 44,
                    Some([(device, context), (to_device, to_context)]) => {
                        fields.words(44, [device, context, to_device]);
                        fields.word(56, to_context);
                        60
                    }
                };
                fields.word(after, self.correlation);
                let node = if peers.is_some() { 72 } else { 64 };
                fields.long(node, self.node);
                fields.word(node + 8, self.graph);
            }
            Body::Fill {
                value,
                bytes,
                memory,
                is_async,
            } => {
                fields.word(4, value);
                fields.long(8, bytes);
                times(&mut fields, 16);
                fields.words(32, [self.device, self.context, self.stream]);
                fields.word(44, self.correlation);
                fields.half(48, u16::from(is_async));
                fields.half(50, memory);
                fields.long(64, self.node);
                fields.word(72, self.graph);
            }
            Body::Synchronization { kind, event, code } => {
                fields.word(4, kind);
                times(&mut fields, 8);
                fields.words(24, [self.correlation, self.context, self.stream]);
                fields.word(36, event);
                fields.word(48, code);
            }
            Body::Overhead { kind } => {
                fields.word(4, kind);
                times(&mut fields, 24);
                fields.word(40, self.correlation);
            }
            Body::Unknown => {}
        }
        Some(fields)
    }
}

/// Records an operation whose end is known. `None` stands for the end of one that has not ended.
pub(crate) fn operation_ended(
    origin: Origin,
    task: &Task,
    place: &Location,
    (thread, order): (u64, u64),
    (start, end): (u64, Option<u64>),
) {
    // Copies and fills of no bytes have no record.
    let is_empty = matches!(
        task.detail,
        Detail::Copy { bytes: 0, .. } | Detail::Fill { bytes: 0, .. }
    );
    if !origin.recorded || is_empty {
        return;
    }
    let mut cupti = state::lock();
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let body = match (task.kind, task.detail) {
        (Some(ActivityKind::Kernel), Detail::Kernel(shape)) => {
            let Some(name) = &task.name else { return };
            let name = cupti.name(name);
            Body::Kernel { name, shape, order }
        }
        (
            Some(ActivityKind::Copy),
            Detail::Copy {
                from,
                to,
                bytes,
                is_async,
                peers,
            },
        ) => {
            let kind = match (from.is_device(), to.is_device()) {
                _ if peers.is_some() => 10,
                (false, true) => 1,
                (true, false) => 2,
                (true, true) => 8,
                (false, false) => 9,
            };
            Body::Copy {
                kind,
                from: from as u8,
                to: to as u8,
                is_async,
                bytes: bytes as u64,
                peers,
            }
        }
        (
            Some(ActivityKind::Fill),
            Detail::Fill {
                value,
                bytes,
                memory,
                is_async,
            },
        ) => Body::Fill {
            value,
            bytes: bytes as u64,
            memory: memory as u16,
            is_async,
        },
        _ => return,
    };
    let record = Record {
        thread,
        offset: origin.offset,
        start,
        end: end.unwrap_or(u64::MAX),
        device: u32::try_from(place.device).unwrap_or(u32::MAX),
        context: number(place.context_id),
        stream: number(place.stream_id),
        correlation: origin.correlation,
        graph: place.graph_id,
        node: place.graph_node,
        body,
    };
    if cupti.kinds.contains(&record.kind()) || matches!(body, Body::Kernel { .. }) {
        let due = end.map_or(u64::MAX, |end| {
            end.saturating_add(cupti.faults.record_delay)
        });
        cupti.keep(due, record);
    }
}
