//! Records of scopes as they travel from a thread to a window: plain data, in ticks.

use std::backtrace::Backtrace;
use std::sync::Arc;

use profiler_report::MemoryUse;

use super::ended::RecordEnding;
use crate::own_cost;

/// The index that means "none".
pub(crate) const NONE: u32 = u32::MAX;

/// A finished scope.
#[derive(Clone, Debug)]
pub(crate) struct ScopeRecord {
    /// The id of its name.
    pub(crate) name: u32,
    pub(crate) ending: RecordEnding,
    /// The index of the thread it ended on, in the tables of the receiver; the thread itself stores 0.
    pub(crate) thread: u32,
    /// `true` if CPU times were recorded when it began.
    pub(crate) has_cpu: bool,
    /// Unique on its thread and in the order of opening; for a future, unique in the process.
    pub(crate) serial: u64,
    /// The serial of the enclosing scope on its thread; 0 for none.
    pub(crate) parent: u64,
    /// Ticks of the clock.
    pub(crate) start: u64,
    /// Ticks of the clock, less the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// The key of its GPU record; 0 for none.
    pub(crate) cuda: u64,
    pub(crate) kind: RecordKind,
    /// Details that only some sessions ask for.
    pub(crate) extra: Option<Arc<ScopeDetails>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A guard, from its scope to its end.
    Scope,
    /// One poll of the future with this serial.
    Poll { future: u64 },
    /// A future, from its first poll to its end; `polled` is the sum of its polls in ticks.
    Future { polled: i64 },
}

/// Returns what a call that a session records costs beyond others, in nanoseconds.
pub(crate) fn cost_of_record() -> f64 {
    own_cost::cost_of_push(|| ScopeRecord {
        name: 0,
        ending: RecordEnding::Returned,
        thread: 0,
        has_cpu: true,
        serial: 0,
        parent: 0,
        start: 0,
        elapsed: 0,
        cuda: 0,
        kind: RecordKind::Scope,
        extra: None,
    })
}

impl ScopeRecord {
    /// Returns the end of the scope, in ticks.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add_signed(self.elapsed.max(0))
    }
}

/// The links of a record to others of its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkedScope {
    /// The index of the enclosing scope in this window. For a scope inside a poll it is the future.
    pub(crate) parent: u32,
    /// The index of its GPU time.
    pub(crate) gpu: u32,
    /// `true` if streams were bound to it while it was open.
    pub(crate) is_bound: bool,
    /// Its time without its children, in ticks.
    pub(crate) own: i64,
}

/// Details of a scope that only some sessions ask for.
#[derive(Debug, Default)]
pub(crate) struct ScopeDetails {
    /// The values of the argument `shapes`, each as its extents.
    pub(crate) shapes: Option<Vec<Box<[usize]>>>,
    pub(crate) memory: Option<MemoryUse>,
    /// The ids of the names of the enclosing scopes, outermost first.
    pub(crate) around: Option<Arc<[u32]>>,
    pub(crate) native: Option<Backtrace>,
    /// The id by which scopes of other threads name this one as their parent; 0 for none.
    pub(crate) shared: u64,
    /// The id of the scope that a handle made the parent; 0 for none.
    pub(crate) parent: u64,
}

/// A thread that recorded scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadInfo {
    /// The system's thread id; a number of the profiler's where the system has none.
    pub(crate) id: u64,
    /// The profiler's number of the thread, which no other thread gets.
    pub(crate) number: u64,
    pub(crate) name: Option<String>,
}
