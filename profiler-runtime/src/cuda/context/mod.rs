//! Contexts that GPU time is taken in, and their pools of event pairs.

mod epoch;
pub(crate) mod measurement;
pub(crate) mod pairs;
pub(crate) mod pool;
mod registry;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use profiler_cuda_sys::driver::{Code, Failed, Fault, RawContext};
use profiler_host::diagnostics;
use profiler_host::sync::Lock;
use profiler_host::sync::ReentrancyGuard;

use self::epoch::Epoch;
use self::measurement::GpuMeasurement;
use self::pool::{MAGAZINE_SIZE, Pool};
use crate::cuda::ffi::{EventApi, refusals};

pub(crate) use registry::{all, of};

/// How many refused calls are printed for each context.
const MAX_WARNED_REFUSALS: u32 = 16;
/// How often the profiler tries to retain a context, if the driver does not tell whether it is a primary one.
const RETAIN_ATTEMPTS: u32 = 4;

/// The context has failed. Nothing is measured in it until the next epoch.
const FAILED: u8 = 1;
/// The context may be destroyed. Nothing is recorded in it until the resolver has found out.
const SUSPECT: u8 = 2;

/// A context handle. It exists until the process ends.
///
/// The contexts that the handle stands for, one after another, are its epochs: [`Epoch`] tells how measured threads and
/// the resolver keep them apart. All other fields are counters and flags, for which `Relaxed` suffices.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) raw: RawContext,
    /// The number of the context in the profiler: its position in the list of all contexts.
    pub(crate) index: u32,
    epoch: Epoch,
    /// [`FAILED`] and [`SUSPECT`], in one word, which a measured thread looks at twice for each scope.
    faults: AtomicU8,
    /// How often the profiler has tried to retain it; [`RETAIN_ATTEMPTS`] once the answer is known.
    retain_attempts: AtomicU32,
    /// `true` if it is a primary context, which the profiler has retained.
    retained: AtomicBool,
    /// The device's ordinal + 1; zero if it is not known.
    device: AtomicU32,
    /// Calls that the driver refused.
    refusals: AtomicU32,
    /// Pairs of this epoch that became part of graphs.
    captured: AtomicUsize,
    /// Generation counters of destroyed pairs, for new pairs. See [`Pair::generation`](measurement::Pair).
    spare_generations: Lock<Vec<&'static AtomicU32>>,
    pool: Pool<Box<GpuMeasurement>>,
    /// Pairs of this epoch that exist, with any owner.
    pairs: AtomicUsize,
}

impl Context {
    fn new(raw: RawContext, index: u32, capacity: usize) -> Self {
        Self {
            raw,
            index,
            epoch: Epoch::new(),
            faults: AtomicU8::new(0),
            retain_attempts: AtomicU32::new(0),
            retained: AtomicBool::new(false),
            device: AtomicU32::new(0),
            refusals: AtomicU32::new(0),
            captured: AtomicUsize::new(0),
            spare_generations: Lock::new(Vec::new()),
            pool: Pool::new(capacity),
            pairs: AtomicUsize::new(0),
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.current()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.faults.load(Relaxed) & FAILED != 0
    }

    /// Returns `true` while the context may be destroyed.
    pub(crate) fn is_suspect(&self) -> bool {
        self.faults.load(Relaxed) & SUSPECT != 0
    }

    /// Returns `true` if the context has neither failed nor may be destroyed.
    #[inline(always)]
    pub(crate) fn is_sound(&self) -> bool {
        self.faults.load(Relaxed) == 0
    }

    pub(crate) fn set_suspect(&self, suspect: bool) {
        if suspect {
            self.faults.fetch_or(SUSPECT, Relaxed);
        } else {
            self.faults.fetch_and(!SUSPECT, Relaxed);
        }
    }

    /// Returns `true` if the profiler has retained the context. Its handle is then valid whatever the program does,
    /// except for a device reset.
    pub(crate) fn is_retained(&self) -> bool {
        self.retained.load(Relaxed)
    }

    /// Retains this context, which must be current, if it is a primary one: its events must not be destroyed before
    /// they are read, whenever the program releases it.
    ///
    /// It is never released. Releasing the last reference waits for the device, and frees at the end of the process
    /// what the driver frees then anyway.
    pub(crate) fn retain(&self, driver: &impl EventApi) {
        let attempt = |attempts| (attempts < RETAIN_ATTEMPTS).then_some(attempts + 1);
        if self
            .retain_attempts
            .fetch_update(Relaxed, Relaxed, attempt)
            .is_err()
        {
            return;
        }
        if let Ok(retained) = driver.retain_if_primary(self.raw) {
            self.retained.store(retained, Relaxed);
            self.retain_attempts.store(RETAIN_ATTEMPTS, Relaxed);
        }
    }

    /// Reads the device of this context, which must be current.
    pub(crate) fn note_device(&self, driver: &impl EventApi) {
        if self.device.load(Relaxed) == 0
            && let Some(device) = driver.current_device()
        {
            self.device.store(device + 1, Relaxed);
        }
    }

    /// Returns the ordinal of its device, if it is known.
    pub(crate) fn device(&self) -> Option<u32> {
        self.device.load(Relaxed).checked_sub(1)
    }

    /// Begins the next epoch: the context has been destroyed, and its events with it. Called by the resolver.
    pub(crate) fn advance_epoch(&self) {
        self.epoch.advance(|| {
            self.pairs.store(0, Relaxed);
            self.faults.fetch_and(!FAILED, Relaxed);
            self.retain_attempts.store(0, Relaxed);
            self.retained.store(false, Relaxed);
            self.captured.store(0, Relaxed);
        });
        let retire = |measurement: Box<GpuMeasurement>| {
            measurement.pair.iter().for_each(|pair| self.retire(pair));
        };
        while self.pool.take(MAGAZINE_SIZE, retire) {}
    }

    /// Marks the context as failed, and prints that once. Nothing is measured in it any more.
    pub(crate) fn fail(&self, driver: &impl EventApi, code: Code, call: &str) {
        if self.faults.fetch_or(FAILED, Relaxed) & FAILED != 0 {
            return;
        }
        let name = {
            let _guard = ReentrancyGuard::try_enter();
            driver.name_of(code)
        };
        diagnostics::warn_once(&format!(
            "a CUDA context has failed: {call} returned {name} ({}), as the program's own calls do from now on; \
             GPU times are left out in it",
            code.0
        ));
    }

    /// Returns `true` if the context in which the events were made is gone: another context has its handle, as after a
    /// device reset, or the driver says that it is destroyed. Always `false` if the driver does not number contexts.
    ///
    /// Called at both ends of each scope, right before an event is recorded. Only the driver knows of a reset, and it
    /// may crash if it is given an event that was destroyed with its context.
    #[inline(always)]
    pub(crate) fn is_replaced(&self, driver: &impl EventApi) -> bool {
        match driver.read_context_id(self.raw) {
            None => false,
            Some(Ok(id)) => self.epoch.is_other(id),
            Some(Err(failed)) => self.is_replaced_after(driver, failed),
        }
    }

    /// [`is_replaced`](Self::is_replaced), after the first attempt to read the id has failed.
    #[cold]
    #[inline(never)]
    fn is_replaced_after(&self, driver: &impl EventApi, failed: Failed) -> bool {
        match driver.context_id_after(failed, self.raw) {
            Ok(id) => self.epoch.is_other(id),
            Err(code) => code.fault() == Fault::ContextGone,
        }
    }

    /// Returns whether the driver's id of the handle differs from the known one, and adopts it if none is known.
    /// Returns `None` if the driver does not number contexts.
    pub(crate) fn has_other_id(&self, driver: &impl EventApi) -> Option<Result<bool, Code>> {
        let id = driver.context_id(self.raw)?;
        Some(id.map(|id| self.epoch.is_other(id)))
    }

    /// Handles an error of a call in this context: marks the context as failed if it is, and prints a warning.
    pub(crate) fn handle_error(&self, driver: &impl EventApi, code: Code, call: &str) -> Fault {
        let fault = code.fault();
        match fault {
            Fault::Sticky => self.fail(driver, code, call),
            Fault::NotPermitted => refusals::warn_of_host_function(),
            // Every refusal is counted, but printing takes time.
            Fault::Refused | Fault::InvalidHandle
                if self.refusals.fetch_add(1, Relaxed) < MAX_WARNED_REFUSALS =>
            {
                refusals::warn_of_refused_call(driver, call, code);
            }
            _ => {}
        }
        fault
    }
}

#[cfg(test)]
impl Context {
    /// A context of a test, which is in no list: with room for `capacity` pairs.
    pub(crate) fn with_capacity(capacity: usize) -> &'static Self {
        Box::leak(Box::new(Self::new(RawContext::NONE, 0, capacity)))
    }

    pub(crate) fn for_test() -> &'static Self {
        Self::with_capacity(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::ffi::fake::FakeDriver;

    #[test]
    fn a_context_is_replaced_when_its_id_changes() {
        let (context, driver) = (Context::for_test(), FakeDriver::new());
        assert!(!context.is_replaced(&driver), "adopts the first id");
        assert!(!context.is_replaced(&driver));
        driver.set_context_id(Some(2));
        assert!(context.is_replaced(&driver));
        assert!(context.is_replaced(&driver), "until the epoch advances");
        context.advance_epoch();
        assert!(!context.is_replaced(&driver), "adopts the next id");
        driver.break_call("cuCtxGetId", 709);
        assert!(context.is_replaced(&driver), "the driver says so");
        driver.break_call("cuCtxGetId", 1);
        assert!(!context.is_replaced(&driver), "the driver does not tell");
    }

    #[test]
    fn a_context_without_ids_is_never_replaced() {
        let (context, driver) = (Context::for_test(), FakeDriver::new());
        driver.set_context_id(None);
        assert_eq!(context.has_other_id(&driver), None);
        assert!(!context.is_replaced(&driver));
    }

    #[test]
    fn a_context_that_exists_after_all_has_still_failed() {
        let (context, driver) = (Context::for_test(), FakeDriver::new());
        context.handle_error(&driver, Code(719), "cuEventQuery");
        context.set_suspect(true);
        assert!(context.has_failed() && context.is_suspect());
        context.set_suspect(false);
        assert!(context.has_failed() && !context.is_suspect());
        assert!(!context.is_sound());
    }

    #[test]
    fn a_new_epoch_forgets_what_was_true_of_the_last() {
        let (context, driver) = (Context::with_capacity(64), FakeDriver::new());
        context.retain(&driver);
        context.handle_error(&driver, Code(719), "cuEventQuery");
        let measurement = context.make_for_graph(&driver).unwrap().unwrap();
        assert!(context.is_retained() && context.has_failed());
        assert_eq!(context.pairs(), 1);
        context.advance_epoch();
        assert!(!context.is_retained() && !context.has_failed());
        assert_eq!((context.epoch(), context.pairs()), (1, 0));
        assert!(!context.is_current_epoch(&measurement));
    }

    #[test]
    fn a_primary_context_is_retained_once() {
        let (context, driver) = (Context::for_test(), FakeDriver::new());
        driver.break_call("cuDevicePrimaryCtxRetain", 1);
        for _ in 0..2 {
            context.retain(&driver);
        }
        assert!(!context.is_retained());
        driver.repair("cuDevicePrimaryCtxRetain");
        for _ in 0..9 {
            context.retain(&driver);
        }
        assert!(context.is_retained());
        assert_eq!(driver.calls("cuDevicePrimaryCtxRetain"), 3);
    }
}
