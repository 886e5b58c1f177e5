//! Contexts that GPU time was taken in, and their pools of events.

pub(crate) mod measurement;
mod pairs;
pub(crate) mod pool;
mod prefetch;

use std::sync::MutexGuard;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::context::pool::{MAGAZINE_SIZE, Pool};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Code, Fault};
use crate::cuda::ffi::driver::RawContext;
use crate::diagnostics;
use crate::switch::with_control;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, RaceCell};

/// Contexts that GPU time is taken in at most: programs have one for each device.
const MAX_CONTEXTS: usize = 256;
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
    /// Counts up whenever the context generation out to be gone: the pairs of earlier lives are forgotten.
    epoch: AtomicU32,
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
    generation: Lock<Vec<&'static AtomicU32>>,
    free: Pool<Box<GpuMeasurement>>,
    /// Pairs of this life there are, wherever they are.
    pairs: AtomicUsize,
}

static CONTEXTS: Lock<Vec<&'static Context>> = Lock::new(Vec::new());

fn contexts() -> MutexGuard<'static, Vec<&'static Context>> {
    CONTEXTS.lock()
}

/// All contexts by now.
pub(crate) fn all() -> Vec<&'static Context> {
    contexts().clone()
}

/// The context with a handle, made known on the first call; none where there are too many.
#[cold]
pub(crate) fn of(driver: &impl EventApi, raw: RawContext) -> Option<&'static Context> {
    let cap = with_control(|control| control.settings.cuda_events);
    let mut contexts = contexts();
    if let Some(known) = contexts.iter().find(|context| context.raw == raw) {
        return Some(known);
    }
    if contexts.len() >= MAX_CONTEXTS {
        drop(contexts);
        say_too_many();
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "below MAX_CONTEXTS")]
    let index = contexts.len() as u32;
    let context: &'static Context = Box::leak(Box::new(Context::new(raw, index, cap)));
    contexts.push(context);
    drop(contexts);
    // Whoever has a context has initialised the driver.
    first_context_met();
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

fn say_too_many() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        diagnostics::warn_once(&format!(
            "the program has made more than {MAX_CONTEXTS} CUDA contexts: GPU times are taken in the first ones only, \
             those that were destroyed included"
        ));
    }
}

#[cfg(test)]
impl Context {
    pub(crate) fn for_test() -> &'static Self {
        Box::leak(Box::new(Self::new(RawContext::NONE, 0, 1)))
    }
}

impl Context {
    fn new(raw: RawContext, index: u32, cap: usize) -> Self {
        Self {
            raw,
            index,
            epoch: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            suspect: AtomicBool::new(false),
            tries: AtomicU32::new(0),
            held: AtomicBool::new(false),
            id: AtomicU64::new(0),
            device: AtomicU32::new(0),
            refusals: AtomicU32::new(0),
            captured: AtomicUsize::new(0),
            generation: Lock::new(Vec::new()),
            free: Pool::new(cap),
            pairs: AtomicUsize::new(0),
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
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

    /// Holds on to a primary context that is current now, to the end of the process: its events must not go
    /// before they are read, whenever the program lets go of it.
    ///
    /// It is not released. Whoever releases a context last waits for its device, and frees at
    /// the end of the process what is freed then anyway.
    pub(crate) fn hold(&self, driver: &impl EventApi) {
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
    pub(crate) fn note_device(&self, driver: &impl EventApi) {
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

    /// The context has been destroyed, and its events with it. What comes under its handle from now on is
    /// another one.
    pub(crate) fn advance_epoch(&self) {
        self.epoch.fetch_add(1, Relaxed);
        // Before anybody takes the one that follows for this one: those that are made there count.
        self.pairs.store(0, Relaxed);
        self.failed.store(false, Relaxed);
        self.tries.store(0, Relaxed);
        self.held.store(false, Relaxed);
        self.id.store(0, Release);
        self.captured.store(0, Relaxed);
        let forget =
            |item: Box<GpuMeasurement>| item.pair.iter().for_each(|pair| self.forget(pair));
        while self.free.take(MAGAZINE_SIZE, forget) {}
    }

    /// The context has failed: nothing in it is touched any more. Said once.
    pub(crate) fn fail(&self, driver: &impl EventApi, code: Code, call: &str) {
        if self.failed.swap(true, Relaxed) {
            return;
        }
        let name = {
            let _busy = ReentrancyGuard::try_enter();
            driver.name_of(code)
        };
        diagnostics::warn_once(&format!(
            "a CUDA context has failed: {call} returned {name} ({}), as the program's own calls do from now on; \
             GPU times are left out in it",
            code.0
        ));
    }

    /// Whether its handle is good whatever the program does, short of resetting the device.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Relaxed)
    }

    /// Whether the context that the events were made in is gone: another one has come under its handle, as after a
    /// reset of the device, or the driver says that it is destroyed. No driver without `cuCtxGetId` tells.
    ///
    /// Asked at each end of each scope, right before an event is recorded: only the driver knows of a reset, and an
    /// event that went with its context must not be handed to it.
    #[inline]
    pub(crate) fn is_replaced(&self, driver: &impl EventApi) -> bool {
        match self.is_another(driver) {
            None | Some(Ok(false)) => false,
            Some(Ok(true)) => true,
            Some(Err(code)) => code.fault() == Fault::ContextGone,
        }
    }

    /// Whether the driver has another number for the handle than when its first events were made; none where it has no
    /// numbers.
    #[inline]
    pub(crate) fn is_another(&self, driver: &impl EventApi) -> Option<Result<bool, Code>> {
        let id = driver.context_id(self.raw)?;
        Some(id.map(|id| {
            let known = self.id.load(Acquire);
            if known == 0 {
                self.adopt(id)
            } else {
                known != id
            }
        }))
    }

    /// Takes a number for that of this life, unless another thread has just done so; true where that was another one.
    #[cold]
    fn adopt(&self, id: u64) -> bool {
        // There is no number zero.
        let known = self.id.compare_exchange(0, id, Acquire, Acquire);
        known.is_err_and(|known| known != id)
    }

    /// Draws the consequences of a code that a call in this context returned.
    pub(crate) fn learn(&self, driver: &impl EventApi, code: Code, call: &str) -> Fault {
        let fault = code.fault();
        match fault {
            Fault::Sticky => self.fail(driver, code, call),
            Fault::NotPermitted => crate::cuda::health::not_permitted(),
            // All is counted; what is said again and again is not worth the time it takes.
            Fault::Refused | Fault::InvalidHandle
                if self.refusals.fetch_add(1, Relaxed) < SAID_REFUSALS =>
            {
                crate::cuda::health::refused(driver, call, code);
            }
            _ => {}
        }
        fault
    }
}

/// What to call when the first context is met.
static ON_FIRST: RaceCell<fn()> = RaceCell::new();

/// Has `hook` called once, when the first context is met: the driver is initialised by then.
pub(crate) fn on_first_context(hook: fn()) {
    ON_FIRST.get_or_init(|| hook);
}

fn first_context_met() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if let Some(hook) = ON_FIRST.get()
        && !DONE.swap(true, Relaxed)
    {
        hook();
    }
}
