//! What goes from the measured threads to the resolver: plain data.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::context::{Context, Pair};
use super::driver::{Event, RawStream};
use super::loss::CudaLoss;
use crate::entry::Attached;

/// What runs in one order on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) context: u32,
    pub(crate) stream: RawStream,
    /// The thread whose stream it is, where the handle means another one on each.
    pub(crate) thread: u64,
}

/// A stream that GPU time was taken on. It displays as the summary names it: `default`,
/// `per-thread default of thread 3`, or the handle in hexadecimal digits, and its context where that is not the
/// first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub(crate) Line);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Line {
    /// That of scopes whose stream is not known.
    pub(crate) const NOWHERE: Self = Self {
        context: u32::MAX,
        stream: RawStream::LEGACY,
        thread: 0,
    };
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stream == RawStream::LEGACY {
            f.write_str("default")?;
        } else if self.stream.is_per_thread() {
            write!(f, "per-thread default of thread {}", self.thread)?;
        } else {
            write!(f, "{:p}", self.stream.0)?;
        }
        match self.context {
            0 => Ok(()),
            other => write!(f, " of context {other}"),
        }
    }
}

/// How other scopes refer to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Unique in the process, and never zero.
    pub(crate) key: u64,
    pub(crate) line: Line,
    /// The number of its name.
    pub(crate) name: u32,
    /// Where it began; none where it has no GPU time.
    pub(crate) begin: Option<Begin>,
    /// Whether it is a future, what is inside of which may overlap.
    pub(crate) is_future: bool,
}

/// The event at the begin of a scope that may have ended since, and its event be another's, or gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    event: Event,
    life: u32,
    turn: u32,
    turns: &'static AtomicU32,
}

impl Begin {
    pub(crate) fn of(pair: &Pair) -> Self {
        Self {
            event: pair.begin,
            life: pair.life,
            turn: pair.turns.load(Relaxed),
            turns: pair.turns,
        }
    }

    /// The event, where it is still that of the scope; asked by the resolver, which alone destroys events.
    pub(crate) fn event(self, life: u32) -> Option<Event> {
        (self.life == life && self.turns.load(Relaxed) == self.turn).then_some(self.event)
    }
}

/// A scope on the CPU, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) end: u64,
    /// Less the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// Whether no scope of the same name was around it.
    pub(crate) outermost: bool,
}

/// Events that wait to be read.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) pair: Pair,
    pub(crate) context: &'static Context,
    /// Whether the events are part of a graph, and are recorded again with each replay.
    pub(crate) is_graph: bool,
    /// Whether the stream was nobody's word but ours.
    pub(crate) is_implicit: bool,
}

/// What a call that is to be logged brings along.
#[derive(Debug)]
pub(crate) struct LogPart {
    pub(crate) attached: Attached,
    pub(crate) every: u32,
    /// Entries of this name that the thread could not push just before this one.
    pub(crate) skipped: u64,
}

/// A finished scope that was to have a GPU time.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) link: Link,
    /// The scope on the same line that it was inside of.
    pub(crate) inside: Option<Link>,
    /// The name of the scope that it was directly inside of, if that is on another line.
    pub(crate) apart: Option<u32>,
    pub(crate) span: Span,
    pub(crate) outcome: Result<Recorded, CudaLoss>,
    pub(crate) log: Option<LogPart>,
}
