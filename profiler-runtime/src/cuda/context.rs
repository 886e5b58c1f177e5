//! Contexts that GPU time was taken in, and their pools of events.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::code::{Code, Fault};
use super::driver::{Driver, RawContext};
use super::item::{Item, Pair, Parcel};
use super::pool::{BUNDLE, Pool};
use crate::health;
use crate::local::Busy;
use crate::switch::with_control;

/// How many pairs a thread makes at once at most: it takes about as many microseconds.
const MADE_AT_ONCE: usize = 16;
/// Contexts that GPU time is taken in at most: programs have one for each device.
const MAX_CONTEXTS: usize = 256;
/// Scopes in the graphs of one context at most.
const MAX_CAPTURED: usize = 256;
/// How many refusals of the driver are put into words for each context.
const SAID_REFUSALS: u32 = 16;
/// How often it is tried to hold a context, where the driver refuses to tell whether that can be.
const HOLD_TRIES: u32 = 4;

/// A context. There is one for each handle, to the end of the process: a driver gives handles of destroyed
/// contexts to new ones, which are further lives of the same `Context` here.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) raw: RawContext,
    pub(crate) index: u32,
    /// Counts up whenever the context turns out to be gone: the pairs of earlier lives are forgotten.
    life: AtomicU32,
    /// Whether it takes no more measurements: it failed.
    failed: AtomicBool,
    /// Whether a call said that it is gone: until the resolver has found out, nothing in it is touched.
    suspect: AtomicBool,
    /// How often it was tried to hold it; `HOLD_TRIES` once it is known whether it can be.
    tries: AtomicU32,
    /// Whether it is a primary context, and is held.
    held: AtomicBool,
    /// Its number in the driver; zero where that does not tell.
    id: AtomicU64,
    /// The ordinal of its device, and one; zero where it is not known.
    device: AtomicU32,
    /// Calls that the driver refused.
    refusals: AtomicU32,
    /// Pairs that became part of graphs.
    captured: AtomicUsize,
    /// Counters of pairs that are gone, for those to come: they are never given up.
    turns: Mutex<Vec<&'static AtomicU32>>,
    free: Pool<Parcel>,
    /// Pairs of this life there are, wherever they are.
    pairs: AtomicUsize,
}

static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

fn contexts() -> MutexGuard<'static, Vec<&'static Context>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All contexts by now.
pub(crate) fn all() -> Vec<&'static Context> {
    contexts().clone()
}

/// The context with a handle, made known on the first call; none where there are too many.
#[cold]
pub(crate) fn of(driver: &Driver, raw: RawContext) -> Option<&'static Context> {
    let cap = with_control(|control| control.settings.cuda_events);
    let mut contexts = contexts();
    if let Some(known) = contexts.iter().find(|context| context.raw == raw) {
        return Some(known);
    }
    if contexts.len() >= MAX_CONTEXTS {
        drop(contexts);
        health::notice(&format!(
            "the program has more than {MAX_CONTEXTS} CUDA contexts: GPU times are taken in the first ones \
             only"
        ));
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "below MAX_CONTEXTS")]
    let context: &'static Context = Box::leak(Box::new(Context {
        raw,
        index: contexts.len() as u32,
        life: AtomicU32::new(0),
        failed: AtomicBool::new(false),
        suspect: AtomicBool::new(false),
        tries: AtomicU32::new(0),
        held: AtomicBool::new(false),
        id: AtomicU64::new(0),
        device: AtomicU32::new(0),
        refusals: AtomicU32::new(0),
        captured: AtomicUsize::new(0),
        turns: Mutex::new(Vec::new()),
        free: Pool::new(cap),
        pairs: AtomicUsize::new(0),
    }));
    contexts.push(context);
    drop(contexts);
    // Whoever has a context has initialised the driver.
    crate::exit::register_before_driver();
    // At once: a short program may be done with it before the resolver comes to it.
    let _ = driver.relaxed(|| {
        driver.with_context(raw, || {
            context.hold(driver);
            // Its number is that of now.
            let _ = context.is_another(driver);
            Ok(())
        })
    });
    Some(context)
}

impl Context {
    pub(crate) fn life(&self) -> u32 {
        self.life.load(Relaxed)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Whether it may be gone, which the resolver finds out.
    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.load(Relaxed)
    }

    pub(crate) fn set_suspect(&self, suspect: bool) {
        self.suspect.store(suspect, Relaxed);
    }

    /// Pairs of its present life, wherever they are.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.load(Relaxed)
    }

    /// Holds on to a primary context that is current now, to the end of the process: its events must not go
    /// before they are read, whenever the program lets go of it.
    ///
    /// It is not released. Whoever releases a context last waits for its device, and frees at
    /// the end of the process what is freed then anyway.
    pub(crate) fn hold(&self, driver: &Driver) {
        if self
            .tries
            .fetch_update(Relaxed, Relaxed, |tries| {
                (tries < HOLD_TRIES).then_some(tries + 1)
            })
            .is_err()
        {
            return;
        }
        if let Ok(held) = driver.retain_if_primary(self.raw) {
            self.held.store(held, Relaxed);
            self.tries.store(HOLD_TRIES, Relaxed);
        }
    }

    /// Finds out the device of the current context, which this is.
    pub(crate) fn note_device(&self, driver: &Driver) {
        if self.device.load(Relaxed) == 0
            && let Some(device) = driver.current_device()
        {
            self.device.store(device + 1, Relaxed);
        }
    }

    /// The ordinal of its device, where it is known.
    pub(crate) fn device(&self) -> Option<u32> {
        self.device.load(Relaxed).checked_sub(1)
    }

    /// Whether an item has events that are there to be recorded: those of an earlier life went with it.
    #[inline]
    pub(crate) fn is_of_this_life(&self, item: &Item) -> bool {
        item.pair.is_some_and(|pair| pair.life == self.life())
    }

    /// Some items for a thread's stash. None come where the pool is at its cap, or the driver refuses.
    #[cold]
    pub(crate) fn refill(
        &'static self,
        driver: &Driver,
        stash: &mut VecDeque<Parcel>,
    ) -> Result<(), Code> {
        let batch = self.batch();
        self.free.take(batch, |item| {
            if self.is_of_this_life(&item) {
                stash.push_back(item);
            }
        });
        if !stash.is_empty() {
            return Ok(());
        }
        let made = driver.relaxed(|| {
            driver.with_context(self.raw, || {
                self.make(driver, batch.min(MADE_AT_ONCE), stash)
            })
        });
        // What was made is used; the rest is asked for again.
        if stash.is_empty() { made } else { Ok(()) }
    }

    /// How many items a thread takes at once: fewer as the pool comes near its cap, down to the one that it
    /// needs, so that threads which have some at hand and do nothing leave the others theirs.
    fn batch(&self) -> usize {
        let in_use = self.pairs().saturating_sub(self.free.len());
        let left = self.free.capacity().saturating_sub(in_use);
        (left / (2 * BUNDLE)).clamp(1, BUNDLE)
    }

    /// Makes pairs in the current context, as many as are wanted and the cap allows.
    fn make(
        &'static self,
        driver: &Driver,
        wanted: usize,
        into: &mut impl Extend<Parcel>,
    ) -> Result<(), Code> {
        for _ in 0..wanted {
            if self.pairs.fetch_add(1, Relaxed) >= self.free.capacity() {
                self.one_less();
                return Ok(());
            }
            match self.make_one(driver) {
                Ok(pair) => into.extend([Item::new(Some(pair))]),
                Err(code) => {
                    self.one_less();
                    return Err(code);
                }
            }
        }
        Ok(())
    }

    /// A pair that was never recorded; none where the cap is reached.
    #[cold]
    pub(crate) fn make_for_graph(&'static self, driver: &Driver) -> Result<Option<Parcel>, Code> {
        let mut made: Vec<Parcel> = Vec::new();
        driver.relaxed(|| driver.with_context(self.raw, || self.make(driver, 1, &mut made)))?;
        self.captured.fetch_add(made.len(), Relaxed);
        let mut item = made.pop();
        if let Some(pair) = item.as_mut().and_then(|item| item.pair.as_mut()) {
            pair.is_graph = true;
        }
        Ok(item)
    }

    /// Whether one more scope may become part of a graph: each keeps its events for as long as the context
    /// lives.
    pub(crate) fn has_room_for_graph(&self) -> bool {
        self.captured.load(Relaxed) < MAX_CAPTURED
    }

    /// Whether nearly all of the pairs are in use: before that the resolver comes by itself early enough, and
    /// calling it costs the measured thread a system call.
    pub(crate) fn is_low(&self) -> bool {
        self.free.len() <= self.pairs() / 8
    }

    fn turns(&self) -> MutexGuard<'_, Vec<&'static AtomicU32>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is to outlive a pair.
    fn forget(&self, pair: &Pair) {
        let _busy = Busy::claim();
        pair.turns.fetch_add(1, Relaxed);
        self.turns().push(pair.turns);
    }

    /// The context may have come to its end meanwhile, and its count to zero.
    fn one_less(&self) {
        let less = |pairs: usize| pairs.checked_sub(1);
        let _ = self.pairs.fetch_update(Relaxed, Relaxed, less);
    }

    fn make_one(&'static self, driver: &Driver) -> Result<Pair, Code> {
        let life = self.life();
        let begin = driver.create_event()?;
        match driver.create_event() {
            Ok(end) => {
                // Not to be held while one is made: an allocator may be measured.
                let known = self.turns().pop();
                Ok(Pair {
                    begin,
                    end,
                    context: self,
                    turns: known.unwrap_or_else(|| Box::leak(Box::default())),
                    life,
                    is_graph: false,
                })
            }
            Err(code) => {
                driver.destroy_event(begin);
                Err(code)
            }
        }
    }

    /// Takes an item back.
    pub(super) fn put_back(&self, item: Parcel) {
        let Some(pair) = item.pair else { return };
        if pair.life == self.life() && !self.has_failed() {
            pair.turns.fetch_add(1, Relaxed);
            // There is room for as many as were made.
            self.free.put(item);
        } else {
            self.forget(&pair);
        }
    }

    /// Makes it cheaper for the measured threads to take what came back, on the resolver's thread.
    pub(crate) fn bundle(&self) {
        self.free.bundle();
    }

    /// Makes the pool twice as large as what is in use of it, on the resolver's thread, so that the measured
    /// threads need not make events.
    pub(crate) fn grow_if_low(&'static self, driver: &Driver) {
        let pairs = self.pairs.load(Relaxed);
        let in_use = pairs.saturating_sub(self.free.len());
        if self.has_failed() || pairs < 2 * MADE_AT_ONCE || 2 * in_use <= pairs {
            return;
        }
        let wanted = 2 * in_use - pairs;
        let mut made: Vec<Parcel> = Vec::new();
        // What goes wrong here goes wrong for who needs a pair, and is said there.
        let _ = driver.with_context(self.raw, || self.make(driver, wanted, &mut made));
        for item in made {
            self.put_back(item);
        }
    }

    /// Destroys pairs that nobody needs, but for `keep` of them.
    pub(crate) fn shrink_to(&self, driver: &Driver, keep: usize) {
        if self.has_failed() || self.free.len() <= keep {
            return;
        }
        let _ = driver.with_context(self.raw, || {
            while self.free.len() > keep
                && let Some(Item {
                    pair: Some(pair), ..
                }) = self.free.pop().as_deref()
            {
                self.destroy(driver, pair);
            }
            Ok(())
        });
    }

    fn destroy(&self, driver: &Driver, pair: &Pair) {
        if pair.life == self.life() {
            driver.destroy_event(pair.begin);
            driver.destroy_event(pair.end);
            self.one_less();
        }
        self.forget(pair);
    }

    /// The context has been destroyed, and its events with it. What comes under its handle from now on is
    /// another one.
    pub(crate) fn end_life(&self) {
        self.life.fetch_add(1, Relaxed);
        self.failed.store(false, Relaxed);
        self.tries.store(0, Relaxed);
        self.held.store(false, Relaxed);
        self.id.store(0, Relaxed);
        self.captured.store(0, Relaxed);
        while let Some(item) = self.free.pop() {
            item.pair.iter().for_each(|pair| self.forget(pair));
        }
        self.pairs.store(0, Relaxed);
    }

    /// The context has failed: nothing in it is touched any more. Said once.
    pub(crate) fn fail(&self, driver: &Driver, code: Code, call: &str) {
        if self.failed.swap(true, Relaxed) {
            return;
        }
        let name = {
            let _busy = Busy::claim();
            driver.name_of(code)
        };
        health::notice(&format!(
            "a CUDA context has failed: {call} returned {name} ({}), as the program's own calls do from now on; \
             GPU times are left out in it",
            code.0
        ));
    }

    /// Whether its handle is good whatever the program does, short of resetting the device.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Relaxed)
    }

    /// Whether another context has come under the handle of one that is not held, since its events were made. Asked
    /// where the context is in use, and so there: NVIDIA defines no answer for one that is gone.
    #[inline]
    pub(crate) fn is_replaced(&self, driver: &Driver) -> bool {
        !self.is_held() && matches!(self.is_another(driver), Some(Ok(true)))
    }

    /// Whether the driver has another number for the handle than when its first events were made; none where it has no
    /// numbers.
    pub(crate) fn is_another(&self, driver: &Driver) -> Option<Result<bool, Code>> {
        let id = driver.context_id(self.raw)?;
        // There is no number zero.
        let other = |id| {
            let known = self.id.compare_exchange(0, id, Relaxed, Relaxed);
            known.is_err_and(|known| known != id)
        };
        Some(id.map(other))
    }

    /// Draws the consequences of a code that a call in this context returned.
    pub(crate) fn learn(&self, driver: &Driver, code: Code, call: &str) -> Fault {
        let fault = code.fault();
        match fault {
            Fault::Sticky => self.fail(driver, code, call),
            // All is counted; what is said again and again is not worth the time it takes.
            Fault::Refused if self.refusals.fetch_add(1, Relaxed) < SAID_REFUSALS => {
                let name = {
                    let _busy = Busy::claim();
                    driver.name_of(code)
                };
                health::notice(&format!(
                    "{call} returned {name} ({}): the GPU times it was called for are left out and counted",
                    code.0
                ));
            }
            _ => {}
        }
        fault
    }
}
