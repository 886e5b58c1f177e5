//! What one scope is inside a window: plain data, in ticks.

use std::backtrace::Backtrace;
use std::sync::Arc;

use crate::memory::MemoryUse;

/// A finished scope, as it goes through the ring of its thread.
#[derive(Clone, Debug)]
pub(crate) struct ScopeRecord {
    /// The number of its name.
    pub(crate) name: u32,
    /// How it ended.
    pub(crate) ending: RecordEnding,
    /// The thread it ended on, as the window counts them; the thread itself leaves it open.
    pub(crate) thread: u32,
    /// Whether its CPU time was asked for; where not, it has only what the GPU says.
    pub(crate) has_cpu: bool,
    /// Unique on its thread, in the order of opening; a future's is unique in the process.
    pub(crate) serial: u64,
    /// The scope it was directly inside of on its thread; 0 for none.
    pub(crate) parent: u64,
    /// In ticks.
    pub(crate) start: u64,
    /// In ticks, less the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// The key of its GPU time; 0 for none.
    pub(crate) cuda: u64,
    pub(crate) kind: RecordKind,
    /// What only some windows ask for.
    pub(crate) extra: Option<Arc<ScopeDetails>>,
}

/// How a recorded scope ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordEnding {
    #[default]
    Returned,
    Panicked,
    Dropped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// From the opening of a guard to its end.
    Scope,
    /// One poll of a future, by the future's serial.
    Poll { future: u64 },
    /// A future from its first poll to its end; polled for so many ticks.
    Future { polled: i64 },
}

impl ScopeRecord {
    /// When it ended, in ticks.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add_signed(self.elapsed.max(0))
    }
}

/// What only some windows ask for.
#[derive(Debug, Default)]
pub(crate) struct ScopeDetails {
    /// The argument `shapes`, each as its extents.
    pub(crate) shapes: Option<Vec<Box<[usize]>>>,
    pub(crate) memory: Option<MemoryUse>,
    /// The open scopes around it, outermost first, as names' numbers.
    pub(crate) around: Option<Arc<[u32]>>,
    pub(crate) native: Option<Backtrace>,
}

/// A thread that recorded something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadInfo {
    /// The system's number of the thread; one of our own where the system gives none.
    pub(crate) id: u64,
    pub(crate) name: Option<String>,
}
