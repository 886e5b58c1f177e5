//! Per-thread rings of recorded scopes, and the scopes that found no place in one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::sync::Rings;

use super::record::{ScopeRecord, ThreadInfo};

pub(super) static RINGS: Rings<ScopeRecord, Arc<ThreadInfo>> = Rings::new();
/// Scopes that found their ring full, or had no ring because the thread was ending.
static RING_FULL: AtomicU64 = AtomicU64::new(0);
/// Scopes that were recorded so far.
static RECORDED: AtomicU64 = AtomicU64::new(0);
/// Scopes that were lost because memory was short.
static NO_MEMORY: AtomicU64 = AtomicU64::new(0);

/// Scopes that could not be recorded, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) ring_full: u64,
    pub(super) no_memory: u64,
}

impl Lost {
    /// Returns the losses since `before` was read.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            ring_full: self.ring_full.saturating_sub(before.ring_full),
            no_memory: self.no_memory.saturating_sub(before.no_memory),
        }
    }
}

/// Scopes that could not be recorded so far.
pub(super) fn lost() -> Lost {
    Lost {
        ring_full: RING_FULL.load(Relaxed),
        no_memory: NO_MEMORY.load(Relaxed),
    }
}

/// Returns how many scopes were recorded so far.
pub(crate) fn recorded() -> u64 {
    RECORDED.load(Relaxed)
}

/// Counts scopes that have no ring to go to, or were lost on their way.
pub(super) fn lose(scopes: u64) {
    RING_FULL.fetch_add(scopes, Relaxed);
}

/// Counts a scope that there is no memory for.
pub(super) fn lose_for_memory() {
    NO_MEMORY.fetch_add(1, Relaxed);
}

/// Calls `take` with each scope that is in the rings now. A scope whose `take` panics counts as lost.
pub(super) fn drain(mut take: impl FnMut(&Arc<ThreadInfo>, ScopeRecord)) {
    let mut recorded = 0;
    RINGS.drain_each(|thread, record| {
        recorded += 1;
        let at_hand = CountedIfDropped;
        take(thread, record);
        std::mem::forget(at_hand);
    });
    RECORDED.fetch_add(recorded, Relaxed);
}

/// Counts one lost scope when a panic drops it.
struct CountedIfDropped;

impl Drop for CountedIfDropped {
    fn drop(&mut self) {
        lose(1);
    }
}
