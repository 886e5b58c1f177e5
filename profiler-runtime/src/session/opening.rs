//! What recording does where scopes open and close, on the measured thread.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::options::wants;
use super::record::{RecordEnding, RecordKind, ScopeDetails, ScopeRecord};
use super::{recording, ring};
use crate::local;
use crate::memory;
use crate::sync::ReentrancyGuard;

/// Scopes that are open on one thread with what only some windows ask for; of more, the oldest are taken for
/// forgotten.
const MAX_OPEN: usize = 4096;

/// A scope that has ended, as far as the CPU is concerned.
pub(crate) struct EndedScope {
    pub(crate) name: u32,
    pub(crate) serial: u64,
    /// The scope it was directly inside of; 0 for none.
    pub(crate) parent: u64,
    pub(crate) start: u64,
    pub(crate) elapsed: i64,
    pub(crate) ending: RecordEnding,
    /// The key of its GPU time; 0 for none.
    pub(crate) cuda: u64,
}

/// What a scope brings along for the windows that want it: few do, and each that could makes room for it.
#[allow(clippy::box_collection, reason = "one word where there is none")]
pub(crate) type Shapes = Option<Box<Vec<Box<[usize]>>>>;

/// The scopes around one that are remembered at most, the innermost.
const MAX_AROUND: usize = 512;

/// A scope that is open, with what only some windows ask for.
#[derive(Debug)]
struct Opening {
    serial: u64,
    shapes: Shapes,
    memory: Option<memory::Mark>,
    chain: Option<Chain>,
    native: Option<Backtrace>,
}

/// The scopes around one, and itself, as names.
#[derive(Debug)]
struct Chain {
    around: Arc<[u32]>,
    name: u32,
    /// Both together, made for the first scope inside.
    inside: Option<Arc<[u32]>>,
}

thread_local! {
    static OPEN: RefCell<Vec<Opening>> = const { RefCell::new(Vec::new()) };
}

fn with_open<T>(f: impl FnOnce(&mut Vec<Opening>) -> T) -> Option<T> {
    OPEN.try_with(|open| open.try_borrow_mut().ok().map(|mut open| f(&mut open)))
        .ok()?
}

/// A recorded scope is about to open; what it has to remember until it ends is kept here. True where it is to count
/// memory: [`opened`] is to be called last.
#[inline]
pub(crate) fn open(name: u32, serial: u64, parent: u64, shapes: Shapes) -> bool {
    let wanted = recording::wanted();
    wanted != 0 && remember(wanted, name, serial, parent, shapes)
}

#[cold]
fn remember(wanted: u32, name: u32, serial: u64, parent: u64, shapes: Shapes) -> bool {
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return false;
    };
    let chain = (wanted & wants::STACK != 0).then(|| Chain::of(name, parent));
    let native = (wanted & wants::NATIVE != 0).then(Backtrace::force_capture);
    let wants_memory = wanted & wants::MEMORY != 0;
    let opening = Opening {
        serial,
        shapes,
        memory: wants_memory.then(memory::before),
        chain,
        native,
    };
    with_open(|open| {
        if open.len() >= MAX_OPEN {
            open.drain(..MAX_OPEN / 2);
        }
        open.push(opening);
    });
    wants_memory
}

/// The scope that was remembered last is open: what is allocated from now on is its own.
#[cold]
pub(crate) fn opened(serial: u64) {
    with_open(|open| {
        let last = open.last_mut().filter(|opening| opening.serial == serial);
        if let Some(mark) = last.and_then(|opening| opening.memory.as_mut()) {
            mark.begin();
        }
    });
}

impl Chain {
    fn of(name: u32, parent: u64) -> Self {
        let known = with_open(|open| {
            let mut openings = open.iter_mut().rev();
            let around = openings.find(|opening| opening.serial == parent)?;
            around.chain.as_mut().map(Chain::inside)
        });
        Self {
            around: known.flatten().unwrap_or_else(|| local::open_names(parent)),
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

/// A recorded scope has ended: what is allocated from now on is not its own.
pub(crate) fn ending(serial: u64) {
    with_open(|open| {
        let place = place_of(open, serial)?;
        let (opened, younger) = open.split_at_mut(place + 1);
        let younger = younger
            .iter_mut()
            .filter_map(|opening| opening.memory.as_mut());
        opened.last_mut()?.memory.as_mut()?.end(younger);
        Some(())
    });
}

/// Records a scope that has ended; its GPU's side has ended too, and may have been read.
pub(crate) fn close(ended: &EndedScope) {
    let extra = take(ended.serial);
    ring::push(record(ended, RecordKind::Scope, extra));
}

/// A recorded scope has ended where its thread keeps nothing any more.
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
        parent: ended.parent,
        start: ended.start,
        elapsed: ended.elapsed,
        cuda: ended.cuda,
        kind,
        extra,
    }
}

/// Where it stands, if something was remembered of it: nearly always last.
fn place_of(open: &[Opening], serial: u64) -> Option<usize> {
    open.iter().rposition(|opening| opening.serial == serial)
}

/// What was remembered of a scope.
fn take(serial: u64) -> Option<Arc<ScopeDetails>> {
    let opening = with_open(|open| {
        let place = place_of(open, serial)?;
        Some(open.remove(place))
    })??;
    let _busy = ReentrancyGuard::try_enter();
    let memory = opening.memory.as_ref().and_then(memory::after);
    Some(Arc::new(ScopeDetails {
        shapes: opening.shapes.map(|shapes| *shapes),
        memory,
        around: opening.chain.map(|chain| chain.around),
        native: opening.native,
    }))
}

/// What a recorded future remembers from its first poll to its end.
#[derive(Debug)]
pub(crate) struct FutureRecord {
    serial: u64,
    extra: Option<Arc<ScopeDetails>>,
}

impl FutureRecord {
    /// Of a future that is polled for the first time while calls are recorded.
    pub(crate) fn begin(parent: u64, shapes: Shapes) -> Option<Box<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !recording::is_recording() {
            return None;
        }
        let _busy = ReentrancyGuard::try_enter()?;
        let wanted = recording::wanted();
        let has = |bit| wanted & bit != 0;
        let extra = (shapes.is_some() || has(wants::STACK) || has(wants::NATIVE)).then(|| {
            Arc::new(ScopeDetails {
                shapes: shapes.map(|shapes| *shapes),
                memory: None,
                around: has(wants::STACK).then(|| Chain::of(0, parent).around),
                native: has(wants::NATIVE).then(Backtrace::force_capture),
            })
        });
        Some(Box::new(Self {
            serial: NEXT.fetch_add(1, Relaxed),
            extra,
        }))
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

/// A poll of a future has ended; the future's serial is zero where it is not recorded itself.
pub(crate) fn close_poll(ended: &EndedScope, future: u64) {
    if recording::is_recording() {
        ring::push(record(ended, RecordKind::Poll { future }, None));
    }
}

/// A future has ended, `polled` ticks of its time in polls.
pub(crate) fn close_future(future: Box<FutureRecord>, ended: &EndedScope, polled: i64) {
    let busy = ReentrancyGuard::try_enter();
    // The room that it was in is given back at once, where that is nobody's.
    let unboxed = |future: Box<FutureRecord>| *future;
    let FutureRecord { serial, extra } = unboxed(future);
    if recording::is_recording() {
        let record = record(ended, RecordKind::Future { polled }, extra);
        // It claims for itself.
        drop(busy);
        ring::push(ScopeRecord { serial, ..record });
    }
}
