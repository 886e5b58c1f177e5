//! A scope that can be the parent of scopes on other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::now;
use crate::stats::Coverage;

/// The caller of a scope, by its node and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) node: u32,
    pub(super) name: u32,
}

/// The ids of the names of a caller and a callee.
pub(super) type Pair = (u32, u32);

/// A call that is open around a scope with a handle, and its node.
pub(super) type SharedCall = (Pair, u32);

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
