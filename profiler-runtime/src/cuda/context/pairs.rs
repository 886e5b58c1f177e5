//! The event pairs of a context: how they are made, handed out, taken back and destroyed.

use std::sync::atomic::Ordering::Relaxed;

use profiler_cuda_sys::driver::Failed;
use profiler_host::sync::ReentrancyGuard;

use super::Context;
use super::measurement::{GpuMeasurement, Pair};
use super::pool::MAGAZINE_SIZE;
use crate::cuda::ffi::EventApi;

/// The most pairs that a measured thread makes at once. Each takes two driver calls.
const MADE_AT_ONCE: usize = 16;
/// The most scopes in the graphs of one context.
const MAX_CAPTURED: usize = 256;

/// Free measurements of one thread. It takes from the end.
#[allow(clippy::vec_box, reason = "the measurements stay where they are")]
pub(crate) type Magazine = Vec<Box<GpuMeasurement>>;

impl Context {
    /// Returns the number of pairs of the current epoch, with any owner.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.load(Relaxed)
    }

    /// Returns `true` if the measurement has events that exist: those of an earlier epoch were destroyed with their
    /// context.
    #[inline]
    pub(crate) fn is_current_epoch(&self, measurement: &GpuMeasurement) -> bool {
        measurement
            .pair
            .is_some_and(|pair| pair.epoch == self.epoch())
    }

    /// Returns the number of pairs in the pool.
    pub(crate) fn in_pool(&self) -> usize {
        self.pool.len()
    }

    /// Puts some measurements into a thread's empty magazine, possibly some of an earlier epoch. Puts none there if the
    /// pool is empty and at its capacity. `in_pool` is the number of [those in the pool](Self::in_pool).
    ///
    /// # Errors
    ///
    /// Returns the driver's error if it refused to make the first pair.
    #[cold]
    pub(crate) fn refill(
        &'static self,
        driver: &impl EventApi,
        magazine: &mut Magazine,
        in_pool: usize,
    ) -> Result<(), Failed> {
        // Do not attribute the memory to the program's scopes.
        let _reentrancy = ReentrancyGuard::try_enter();
        let size = self.refill_size(in_pool);
        if size == MAGAZINE_SIZE && self.pool.exchange(magazine) {
            return Ok(());
        }
        if self
            .pool
            .take(size, |measurement| magazine.push(measurement))
        {
            // It is taken from at its end.
            magazine.reverse();
            return Ok(());
        }
        let made = driver.relaxed(|| {
            driver.with_context(self.raw, || {
                self.make(driver, size.min(MADE_AT_ONCE), magazine)
            })
        });
        // A later error does not matter to this scope, and comes again at the next refill.
        if magazine.is_empty() { made } else { Ok(()) }
    }

    /// Returns how many measurements a thread takes at once: a magazine, and fewer as the pool nears its capacity, down
    /// to one. Items in the magazines of idle threads are unavailable to the others.
    fn refill_size(&self, in_pool: usize) -> usize {
        let in_use = self.pairs().saturating_sub(in_pool);
        let available = self.pool.capacity().saturating_sub(in_use);
        (available / (2 * MAGAZINE_SIZE)).clamp(1, MAGAZINE_SIZE)
    }

    /// Makes pairs in the current context: `wanted`, or as many as the capacity allows.
    fn make(
        &'static self,
        driver: &impl EventApi,
        wanted: usize,
        into: &mut impl Extend<Box<GpuMeasurement>>,
    ) -> Result<(), Failed> {
        for _ in 0..wanted {
            let others = self.pairs.fetch_add(1, Relaxed);
            if others >= self.pool.capacity() {
                self.decrement_pairs();
                return Ok(());
            }
            self.pool.reserve(others + 1);
            match self.make_one(driver) {
                Ok(pair) => into.extend([GpuMeasurement::new(Some(pair))]),
                Err(failed) => {
                    self.decrement_pairs();
                    return Err(failed);
                }
            }
        }
        Ok(())
    }

    fn make_one(&'static self, driver: &impl EventApi) -> Result<Pair, Failed> {
        // Before the events are made: if the context is replaced in between, the pair counts as one of the earlier
        // epoch, which leaks two events but never records a destroyed one.
        let epoch = self.epoch();
        let begin = driver.create_event()?;
        let end = driver
            .create_event()
            .inspect_err(|_| driver.destroy_event(begin))?;
        // In a statement of its own, which releases the lock before anything is allocated: an allocator may be
        // measured.
        let spare = self.spare_generations.lock().pop();
        Ok(Pair {
            begin,
            end,
            context: self,
            generation: spare.unwrap_or_else(|| Box::leak(Box::default())),
            epoch,
            is_graph: false,
        })
    }

    /// Makes a pair for a captured scope. It must never have been recorded, or its times would look like those of a
    /// replay. Returns `Ok(None)` at capacity.
    #[cold]
    pub(crate) fn make_for_graph(
        &'static self,
        driver: &impl EventApi,
    ) -> Result<Option<Box<GpuMeasurement>>, Failed> {
        let mut made: Vec<Box<GpuMeasurement>> = Vec::new();
        driver.relaxed(|| driver.with_context(self.raw, || self.make(driver, 1, &mut made)))?;
        self.captured.fetch_add(made.len(), Relaxed);
        let mut measurement = made.pop();
        if let Some(pair) = measurement
            .as_mut()
            .and_then(|measurement| measurement.pair.as_mut())
        {
            pair.is_graph = true;
        }
        Ok(measurement)
    }

    /// Returns `true` if one more scope may become part of a graph. Each keeps its events until the context is
    /// destroyed.
    pub(crate) fn has_room_for_graph(&self) -> bool {
        self.captured.load(Relaxed) < MAX_CAPTURED
    }

    /// Takes back a pair from [`make_for_graph`](Self::make_for_graph) that did not become part of the graph.
    pub(crate) fn uncount_captured(&self) {
        let less = |captured: usize| captured.checked_sub(1);
        let _ = self.captured.fetch_update(Relaxed, Relaxed, less);
    }

    /// Returns `true` if nearly all pairs are in use, so that the resolver must be woken. Until then its own pace is
    /// fast enough, and waking it would cost the measured thread a system call.
    pub(crate) fn is_low(&self, in_pool: usize) -> bool {
        in_pool <= self.pairs() / 8
    }

    /// Returns `true` if there may be no more pairs, and few are free.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.pairs() >= self.pool.capacity() && self.is_low(self.in_pool())
    }

    /// Keeps the generation counter of a destroyed pair for a new one.
    pub(crate) fn retire(&self, pair: &Pair) {
        let _guard = ReentrancyGuard::try_enter();
        pair.generation.fetch_add(1, Relaxed);
        self.spare_generations.lock().push(pair.generation);
    }

    /// Counts a pair less, unless a new epoch has set the count to zero.
    fn decrement_pairs(&self) {
        let less = |pairs: usize| pairs.checked_sub(1);
        let _ = self.pairs.fetch_update(Relaxed, Relaxed, less);
    }

    /// Takes a measurement back into the pool.
    pub(crate) fn put_back(&self, measurement: Box<GpuMeasurement>) {
        let Some(pair) = measurement.pair else { return };
        if pair.epoch == self.epoch() && !self.has_failed() {
            pair.generation.fetch_add(1, Relaxed);
            // The pool has a place for each pair of one epoch. It is full only if a measurement of an earlier epoch
            // was put back between the check above and the epoch's end.
            if self.pool.put(measurement).is_err() {
                self.decrement_pairs();
                self.retire(&pair);
            }
        } else {
            self.retire(&pair);
        }
    }

    /// Fills magazines from the measurements that came back; near the capacity, empties them so that threads can take
    /// single measurements. Called by the resolver.
    pub(crate) fn balance_magazines(&self) {
        if self.refill_size(self.in_pool()) == MAGAZINE_SIZE {
            self.pool.fill_magazines();
        } else {
            self.pool.empty_magazines();
        }
    }

    /// Makes pairs until there are twice as many as are in use, so that measured threads need not make any. Called by
    /// the resolver.
    pub(crate) fn grow_if_low(&'static self, driver: &impl EventApi) {
        let pairs = self.pairs();
        let in_use = pairs.saturating_sub(self.pool.len());
        if self.has_failed() || pairs < 2 * MADE_AT_ONCE || 2 * in_use <= pairs {
            return;
        }
        let wanted = 2 * in_use - pairs;
        let mut made: Vec<Box<GpuMeasurement>> = Vec::new();
        // A measured thread that needs a pair will meet the same error, and report it.
        let _ = driver.with_context(self.raw, || self.make(driver, wanted, &mut made));
        for measurement in made {
            self.put_back(measurement);
        }
    }

    /// Destroys free pairs until `keep` are left.
    pub(crate) fn shrink_to(&self, driver: &impl EventApi, keep: usize) {
        if self.has_failed() || self.pool.len() <= keep {
            return;
        }
        let _ = driver.with_context(self.raw, || {
            let destroy = |measurement: Box<GpuMeasurement>| {
                measurement
                    .pair
                    .iter()
                    .for_each(|pair| self.destroy(driver, pair));
            };
            self.pool.empty_magazines();
            while self.pool.len() > keep && self.pool.take(1, destroy) {}
            Ok(())
        });
    }

    fn destroy(&self, driver: &impl EventApi, pair: &Pair) {
        if pair.epoch == self.epoch() {
            driver.destroy_event(pair.begin);
            driver.destroy_event(pair.end);
            self.decrement_pairs();
        }
        self.retire(pair);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::cuda::ffi::fake::FakeDriver;

    fn refilled(context: &'static Context, driver: &FakeDriver) -> Magazine {
        let mut magazine = Vec::new();
        context
            .refill(driver, &mut magazine, context.in_pool())
            .unwrap();
        magazine
    }

    fn put_all(context: &Context, measurements: impl IntoIterator<Item = Box<GpuMeasurement>>) {
        for measurement in measurements {
            context.put_back(measurement);
        }
    }

    #[test]
    fn a_thread_takes_fewer_pairs_as_the_pool_nears_its_capacity() {
        let (context, driver) = (Context::with_capacity(256), FakeDriver::new());
        let first = refilled(context, &driver);
        assert_eq!(first.len(), 4, "256 pairs are four halves of a magazine");
        let mut all = first;
        while all.len() < 256 {
            let more = refilled(context, &driver);
            assert!(!more.is_empty());
            all.extend(more);
        }
        assert_eq!((context.pairs(), driver.events()), (256, 512));
        assert!(refilled(context, &driver).is_empty(), "at capacity");
        put_all(context, all);
        assert_eq!(refilled(context, &driver).len(), 4);
        assert_eq!(driver.events(), 512, "taken from the pool");
    }

    #[test]
    fn events_that_cannot_be_made_are_an_error_only_without_any_pair() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        driver.break_call("cuEventCreate", 2);
        let mut magazine = Vec::new();
        let failed = context
            .refill(&driver, &mut magazine, context.in_pool())
            .unwrap_err();
        assert_eq!((failed.call, failed.code.0), ("cuEventCreate", 2));
        assert_eq!((context.pairs(), driver.events()), (0, 0));
        driver.repair("cuEventCreate");
        assert_eq!(refilled(context, &driver).len(), MADE_AT_ONCE);
    }

    #[test]
    fn the_pool_grows_to_twice_what_is_in_use_and_shrinks_again() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        let mut in_use = Vec::new();
        for _ in 0..4 {
            in_use.extend(refilled(context, &driver));
        }
        assert_eq!(in_use.len(), 4 * MADE_AT_ONCE);
        context.grow_if_low(&driver);
        assert_eq!(context.pairs(), 8 * MADE_AT_ONCE);
        put_all(context, in_use);
        context.balance_magazines();
        context.shrink_to(&driver, 48);
        assert_eq!((context.pairs(), driver.events()), (48, 96));
        context.shrink_to(&driver, 0);
        assert_eq!((context.pairs(), driver.events()), (0, 0));
    }

    #[test]
    fn pairs_of_an_earlier_epoch_are_neither_reused_nor_destroyed() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        let mut taken = refilled(context, &driver);
        context.put_back(taken.pop().unwrap());
        let events = driver.events();
        context.advance_epoch();
        assert_eq!(context.pool.len(), 0);
        put_all(context, taken);
        assert_eq!((context.pool.len(), context.pairs()), (0, 0));
        assert_eq!(driver.calls("cuEventDestroy_v2"), 0);
        let fresh = refilled(context, &driver);
        assert!(
            fresh
                .iter()
                .all(|measurement| context.is_current_epoch(measurement))
        );
        assert_eq!(driver.events(), events + 2 * fresh.len());
        let counters = |measurements: &[Box<GpuMeasurement>]| {
            let pairs = measurements
                .iter()
                .filter_map(|measurement| measurement.pair);
            pairs
                .map(|pair| std::ptr::from_ref::<AtomicU32>(pair.generation))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(counters(&fresh).len(), fresh.len(), "each has its own");
        assert_eq!(context.spare_generations.lock().len(), 0, "all reused");
    }

    #[test]
    fn captured_scopes_are_bounded() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        while context.has_room_for_graph() {
            let measurement = context.make_for_graph(&driver).unwrap().unwrap();
            assert!(measurement.pair.is_some_and(|pair| pair.is_graph));
        }
        assert_eq!(context.pairs(), MAX_CAPTURED);
    }
}
