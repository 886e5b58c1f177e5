//! Recording on the measured thread, where scopes open and close.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::sync::ReentrancyGuard;

use super::ended::{EndedScope, RecordEnding, Shapes};
use super::options::details;
use super::record::{RecordKind, ScopeDetails, ScopeRecord};
use super::{recording, ring, thread_ring};
use crate::local::{self, Innermost};
use crate::memory::ScopeMemory;

/// Open scopes with details that one thread remembers. Beyond that, the older half is presumed leaked.
const MAX_OPEN: usize = 4096;

/// The innermost enclosing scopes that are remembered.
const MAX_AROUND: usize = 512;

/// An open scope with details that some session asks for.
#[derive(Debug)]
struct DetailedScope {
    serial: u64,
    shapes: Shapes,
    memory: Option<ScopeMemory>,
    chain: Option<Chain>,
    native: Option<Backtrace>,
}

/// The names of the scopes around an open scope, and its own.
#[derive(Debug)]
struct Chain {
    around: Arc<[u32]>,
    name: u32,
    /// `around` and `name` together, computed for the first scope inside.
    inside: Option<Arc<[u32]>>,
}

thread_local! {
    static OPEN: RefCell<Vec<DetailedScope>> = const { RefCell::new(Vec::new()) };
}

fn with_open<T>(f: impl FnOnce(&mut Vec<DetailedScope>) -> T) -> Option<T> {
    OPEN.try_with(|open| open.try_borrow_mut().ok().map(|mut open| f(&mut open)))
        .ok()?
}

/// Remembers the details of a recorded scope that is about to open. `outer` is the thread's innermost entry before it.
/// Returns `true` if memory is counted; then [`opened`] must be called last.
#[inline]
pub(crate) fn open(name: u32, serial: u64, outer: Innermost, shapes: Shapes) -> bool {
    let wanted = recording::wanted();
    wanted != 0 && remember(wanted, name, serial, outer, shapes)
}

#[cold]
fn remember(wanted: u32, name: u32, serial: u64, outer: Innermost, shapes: Shapes) -> bool {
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return false;
    };
    let chain = (wanted & details::STACK != 0).then(|| Chain::of(name, outer));
    let native = (wanted & details::NATIVE != 0).then(Backtrace::force_capture);
    let wants_memory = wanted & details::MEMORY != 0;
    let scope = DetailedScope {
        serial,
        shapes,
        memory: wants_memory.then(ScopeMemory::before_scope),
        chain,
        native,
    };
    with_open(|open| {
        if open.len() >= MAX_OPEN {
            open.drain(..MAX_OPEN / 2);
        }
        open.push(scope);
    });
    wants_memory
}

/// Starts counting memory for the scope remembered last.
#[cold]
pub(crate) fn opened(serial: u64) {
    with_open(|open| {
        let last = open.last_mut().filter(|scope| scope.serial == serial);
        if let Some(memory) = last.and_then(|scope| scope.memory.as_mut()) {
            memory.begin();
        }
    });
}

impl Chain {
    fn of(name: u32, outer: Innermost) -> Self {
        let known = with_open(|open| {
            let mut scopes = open.iter_mut().rev();
            let around = scopes.find(|scope| scope.serial == outer.serial())?;
            around.chain.as_mut().map(Chain::inside)
        });
        Self {
            around: known
                .flatten()
                .unwrap_or_else(|| local::names_around(outer)),
            name,
            inside: None,
        }
    }

    fn inside(&mut self) -> Arc<[u32]> {
        let inside = self.inside.get_or_insert_with(|| {
            let beyond = (self.around.len() + 1).saturating_sub(MAX_AROUND);
            let names = self.around.iter().skip(beyond).copied();
            names.chain([self.name]).collect()
        });
        Arc::clone(inside)
    }
}

/// Stops counting memory for a scope.
pub(crate) fn ending(serial: u64) {
    with_open(|open| {
        let place = place_of(open, serial)?;
        let (opened, younger) = open.split_at_mut(place + 1);
        let younger = younger.iter_mut().filter_map(|scope| scope.memory.as_mut());
        opened.last_mut()?.memory.as_mut()?.end(younger);
        Some(())
    });
}

/// Records a scope without details and without a GPU time, inside `parent` on its thread. Returns `false`, and does
/// nothing, if [`close`] must do it.
#[inline]
pub(crate) fn close_early(
    name: u32,
    serial: u64,
    parent: u64,
    (start, elapsed): (u64, i64),
) -> bool {
    thread_ring::push_early(|| ScopeRecord {
        name,
        ending: RecordEnding::Returned,
        thread: 0,
        has_cpu: true,
        serial,
        parent,
        start,
        elapsed,
        cuda: 0,
        kind: RecordKind::Scope,
        extra: None,
    })
}

/// Records a scope that has ended, after its GPU side has ended.
pub(crate) fn close(ended: &EndedScope) {
    let extra = take(ended.serial);
    let extra = with_ids(extra, ended.shared, ended.place.parent);
    thread_ring::push(record(ended, RecordKind::Scope, extra));
}

/// Counts a recorded scope that ended after its thread had released its state.
#[cold]
pub(crate) fn lose() {
    ring::lose(1);
}

fn record(ended: &EndedScope, kind: RecordKind, extra: Option<Arc<ScopeDetails>>) -> ScopeRecord {
    ScopeRecord {
        name: ended.name,
        ending: ended.ending,
        thread: 0,
        has_cpu: true,
        serial: ended.serial,
        parent: ended.place.enclosing,
        start: ended.start,
        elapsed: ended.elapsed,
        cuda: ended.cuda,
        kind,
        extra,
    }
}

/// Returns the position of a remembered scope; nearly always the last.
fn place_of(open: &[DetailedScope], serial: u64) -> Option<usize> {
    open.iter().rposition(|scope| scope.serial == serial)
}

/// Takes the details of a remembered scope.
fn take(serial: u64) -> Option<Arc<ScopeDetails>> {
    let scope = with_open(|open| {
        let place = place_of(open, serial)?;
        Some(open.remove(place))
    })??;
    let _busy = ReentrancyGuard::try_enter();
    let memory = scope.memory.as_ref().and_then(ScopeMemory::after_scope);
    Some(Arc::new(ScopeDetails {
        shapes: scope.shapes.map(|shapes| *shapes),
        memory,
        around: scope.chain.map(|chain| chain.around),
        native: scope.native,
        shared: 0,
        parent: 0,
    }))
}

/// Adds the ids that connect scopes of different threads, if there are any.
fn with_ids(
    extra: Option<Arc<ScopeDetails>>,
    shared: u64,
    parent: u64,
) -> Option<Arc<ScopeDetails>> {
    if shared == 0 && parent == 0 {
        return extra;
    }
    let _busy = ReentrancyGuard::try_enter();
    let mut extra = extra.unwrap_or_default();
    // The record has not been sent yet, so that there is no other reference.
    if let Some(details) = Arc::get_mut(&mut extra) {
        (details.shared, details.parent) = (shared, parent);
    }
    Some(extra)
}

/// The details of a recorded future, from its first poll to its end.
#[derive(Debug)]
pub(crate) struct FutureRecord {
    serial: u64,
    /// The id of the scope that a handle made the parent; 0 for none.
    parent: u64,
    extra: Option<Arc<ScopeDetails>>,
}

impl FutureRecord {
    /// Remembers a future at its first poll. `outer` is the thread's innermost entry before the poll. Returns `None` if
    /// no session records.
    pub(crate) fn begin(outer: Innermost, shapes: Shapes) -> Option<Box<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !recording::is_recording() {
            return None;
        }
        let _busy = ReentrancyGuard::try_enter()?;
        let wanted = recording::wanted();
        let has = |bit| wanted & bit != 0;
        let extra = (shapes.is_some() || has(details::STACK) || has(details::NATIVE)).then(|| {
            Arc::new(ScopeDetails {
                shapes: shapes.map(|shapes| *shapes),
                memory: None,
                around: has(details::STACK).then(|| Chain::of(0, outer).around),
                native: has(details::NATIVE).then(Backtrace::force_capture),
                shared: 0,
                parent: 0,
            })
        });
        Some(Box::new(Self {
            serial: NEXT.fetch_add(1, Relaxed),
            parent: local::place(outer).parent,
            extra,
        }))
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

/// Records a poll of a future; `future` is the future's serial, or zero if the future is not recorded.
pub(crate) fn close_poll(ended: &EndedScope, future: u64) {
    if recording::is_recording() {
        thread_ring::push(record(ended, RecordKind::Poll { future }, None));
    }
}

/// Records a future that has ended; `polled` is the sum of its polls in ticks.
pub(crate) fn close_future(future: Box<FutureRecord>, ended: &EndedScope, polled: i64) {
    let busy = ReentrancyGuard::try_enter();
    // Free the box inside the profiler, so that the memory is not attributed to the program.
    let unboxed = |future: Box<FutureRecord>| *future;
    let FutureRecord {
        serial,
        parent,
        extra,
    } = unboxed(future);
    if recording::is_recording() {
        let extra = with_ids(extra, ended.shared, parent);
        let record = record(ended, RecordKind::Future { polled }, extra);
        // `push` enters the guard itself.
        drop(busy);
        thread_ring::push(ScopeRecord { serial, ..record });
    }
}
