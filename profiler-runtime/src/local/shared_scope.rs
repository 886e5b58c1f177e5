//! A scope that can be the parent of scopes on other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::callers::{Caller, SharedCall};
use crate::clock::now;
use crate::stats::Coverage;

/// The part of an open scope, or of a future, that threads share if it has a handle.
#[derive(Debug)]
pub(crate) struct SharedScope {
    /// Unique in the process, and not 0.
    pub(crate) id: u64,
    /// The names of the scope and of the scopes around it, outermost first, each once.
    pub(crate) names: Arc<[u32]>,
    /// The scope as a caller, if callers are counted.
    pub(super) caller: Caller,
    /// The calls that are open around the scope and by it, if callers are counted: each pair of caller and callee once.
    pub(super) calls: Arc<[SharedCall]>,
    /// For how long children on other threads ran while the scope itself waited.
    pub(crate) coverage: Coverage,
}

impl SharedScope {
    /// Shares a scope that the calling thread is in.
    pub(super) fn new(
        names: Arc<[u32]>,
        (caller, calls): (Caller, Arc<[SharedCall]>),
    ) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            id: NEXT.fetch_add(1, Relaxed),
            names,
            caller,
            calls,
            coverage: Coverage::new(now()),
        })
    }
}
