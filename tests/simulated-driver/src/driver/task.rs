//! The operations of streams and graphs, and the points in time at which they end.

use std::sync::Arc;

use super::ffi::HostFunction;
use super::kernel::LaunchDims;
use crate::report::ActivityKind;

/// The time of a point in a stream, or the number of unfinished work that ends at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    At(u64),
    After(u64),
}

/// The latest of several points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) at: u64,
    /// Work whose end is not known yet.
    pub(crate) pending: Vec<u64>,
}

impl Join {
    pub(crate) fn add(&mut self, point: Point) {
        match point {
            Point::At(at) => self.at = self.at.max(at),
            Point::After(work) if self.pending.contains(&work) => {}
            Point::After(work) => self.pending.push(work),
        }
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.at = self.at.max(other.at);
        other
            .pending
            .iter()
            .for_each(|work| self.add(Point::After(*work)));
    }
}

impl From<Point> for Join {
    fn from(point: Point) -> Self {
        let mut join = Self::default();
        join.add(point);
        join
    }
}

/// The duration of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskDuration {
    Ns(u64),
    /// The time that this function takes.
    Host(HostFunction),
}

/// The source of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Address(usize),
    /// A copy of host memory that the program may change after the call.
    Kept(Arc<[u8]>),
}

/// The effect of an operation on memory.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    None,
    /// `known` is `true` for each end that was allocated by the driver. Such memory may have been
    /// freed when the copy runs.
    Copy {
        to: usize,
        from: Source,
        bytes: usize,
        known: [bool; 2],
    },
    Fill {
        to: usize,
        pattern: u32,
        width: usize,
        count: usize,
    },
    Free {
        address: usize,
    },
    /// Its begin and its end, in nanoseconds of the driver's clock, are written there as numbers of 64 bits.
    Stamp {
        to: usize,
    },
}

/// The kind of a range of memory, with CUPTI's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MemoryKind {
    Pageable = 1,
    Pinned = 2,
    Device = 3,
    Managed = 5,
}

impl MemoryKind {
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Managed)
    }
}

/// The content of an operation's record beyond its kind and name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    None,
    Kernel(LaunchDims),
    Copy {
        from: MemoryKind,
        to: MemoryKind,
        bytes: usize,
        is_async: bool,
        /// Device and context of the source and of the destination, of a copy between contexts.
        peers: Option<[(u32, u32); 2]>,
    },
    Fill {
        value: u32,
        bytes: usize,
        memory: MemoryKind,
        is_async: bool,
    },
}

/// An operation of a stream or a graph. It is passed in a box: threads with the smallest stack call the driver too.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// `None` for an operation that is not logged.
    pub(crate) kind: Option<ActivityKind>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) duration: TaskDuration,
    pub(crate) effect: Effect,
    pub(crate) detail: Detail,
    /// The event that it records.
    pub(crate) event: Option<usize>,
}

impl Task {
    pub(crate) fn new(kind: ActivityKind, duration: TaskDuration) -> Box<Self> {
        Self::plain(Some(kind), duration, None)
    }

    /// Returns an operation that only joins several points.
    pub(crate) fn marker() -> Box<Self> {
        Self::plain(None, TaskDuration::Ns(0), None)
    }

    pub(crate) fn record(event: usize) -> Box<Self> {
        let kind = ActivityKind::EventRecord;
        Self::plain(Some(kind), TaskDuration::Ns(0), Some(event))
    }

    fn plain(
        kind: Option<ActivityKind>,
        duration: TaskDuration,
        event: Option<usize>,
    ) -> Box<Self> {
        Box::new(Self {
            kind,
            name: None,
            duration,
            effect: Effect::None,
            detail: Detail::None,
            event,
        })
    }
}

/// Where an operation runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) device: usize,
    pub(crate) context: usize,
    pub(crate) context_id: u64,
    pub(crate) stream: u64,
    pub(crate) stream_id: u64,
    pub(crate) graph: Option<usize>,
    /// The numbers of the executable graph and of its node, or 0.
    pub(crate) graph_id: u32,
    pub(crate) graph_node: u64,
}
