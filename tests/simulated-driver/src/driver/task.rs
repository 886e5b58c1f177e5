//! What streams and graphs are given to do, and the points in time between.

use std::sync::Arc;

use super::ffi::HostFunction;
use crate::report::ActivityKind;

/// A point of a stream: a time, or the end of work whose end is not known yet.
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

/// How long work takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    Ns(u64),
    /// As long as this function runs.
    Host(HostFunction),
}

/// Where the bytes of a copy come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Address(usize),
    /// Host memory that the program may reuse after the call.
    Kept(Arc<[u8]>),
}

/// What work does to memory.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    None,
    /// `known` says of either end whether it was allocated here, and so may be gone by then.
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
}

/// Work for a stream or a graph.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// `None` for what leaves no trace in the log.
    pub(crate) kind: Option<ActivityKind>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) span: Span,
    pub(crate) effect: Effect,
    /// The event that this records.
    pub(crate) event: Option<usize>,
}

impl Task {
    pub(crate) fn new(kind: ActivityKind, span: Span) -> Self {
        Self {
            kind: Some(kind),
            name: None,
            span,
            effect: Effect::None,
            event: None,
        }
    }

    /// Nothing but a place to meet.
    pub(crate) fn marker() -> Self {
        Self {
            kind: None,
            name: None,
            span: Span::Ns(0),
            effect: Effect::None,
            event: None,
        }
    }

    pub(crate) fn record(event: usize) -> Self {
        Self {
            event: Some(event),
            ..Self::new(ActivityKind::EventRecord, Span::Ns(0))
        }
    }
}

/// Where work runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) device: usize,
    pub(crate) context: usize,
    pub(crate) context_id: u64,
    pub(crate) stream: u64,
    pub(crate) stream_id: u64,
    pub(crate) graph: Option<usize>,
}
