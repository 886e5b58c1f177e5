//! A scope that can be the parent of scopes on other threads.

use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::sync::Lock;

use crate::clock::now;
use crate::name;
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

/// The number of a scope that has a [`Handle`](crate::Handle): [`Handle::id`](crate::Handle::id).
///
/// It is unique in the process, and keeps nothing alive: it can be copied, and kept for as long as the program likes. A
/// [launch hook](crate::cuda::set_launch_hook) names a scope by it.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Handle, scope};
///
/// assert_eq!(Handle::none().id(), None);
/// let _scope = scope!("ask");
/// let (one, other) = (Handle::current(), Handle::current());
/// assert_eq!(one.id(), other.id());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(NonZeroU64);

impl HandleId {
    pub(crate) fn of(scope: &SharedScope) -> Option<Self> {
        NonZeroU64::new(scope.id).map(Self)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

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
    /// The times of devices that something else measured in the scope.
    reported: Lock<Reported>,
    /// For how long children on other threads ran while the scope itself waited.
    pub(crate) coverage: Coverage,
}

/// Times of devices that something else measured. Which name is theirs, the scope says when it ends.
#[derive(Debug, Default)]
struct Reported {
    /// The id of the scope's name, once the scope has ended.
    name: Option<u32>,
    /// The sum of those that are not counted yet.
    ns: f64,
}

impl Reported {
    /// Counts the times, if the name is known.
    fn count(&mut self) {
        let name = self.name.filter(|_| self.ns > 0.0).and_then(name::by_id);
        if let Some(name) = name {
            let ns = mem::take(&mut self.ns);
            name.cuda.with(|times| times.add_reported(ns));
        }
    }
}

impl SharedScope {
    /// Adds a time of a device to the scope's name. The caller is inside of the profiler.
    pub(crate) fn report(&self, ns: f64) {
        let mut reported = self.reported.lock();
        reported.ns += ns;
        reported.count();
    }

    /// Notes that the scope has ended, and the id of its name.
    pub(crate) fn end(&self, name: u32) {
        let mut reported = self.reported.lock();
        reported.name = Some(name);
        reported.count();
    }

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
            reported: Lock::new(Reported::default()),
            coverage: Coverage::new(now()),
        })
    }
}
