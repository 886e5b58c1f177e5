//! The pairs of events of a context: made, handed out, taken back, destroyed.

use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Context;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::context::pool::MAGAZINE_SIZE;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Failed;
use crate::sync::ReentrancyGuard;

/// How many pairs a thread makes at once at most: for each it calls the driver twice.
const MADE_AT_ONCE: usize = 16;
/// Scopes in the graphs of one context at most.
const MAX_CAPTURED: usize = 256;

impl Context {
    /// Pairs of its present life, wherever they are.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.load(Relaxed)
    }

    /// Whether an item has events that are there to be recorded: those of an earlier life went with it.
    #[inline]
    pub(crate) fn is_of_current_epoch(&self, item: &GpuMeasurement) -> bool {
        item.pair.is_some_and(|pair| pair.epoch == self.epoch())
    }

    /// Some items for a thread's magazine, among which may be some of an earlier life. None come where the pool is at
    /// its cap, or the driver refuses.
    #[cold]
    pub(crate) fn refill(
        &'static self,
        driver: &impl EventApi,
        magazine: &mut VecDeque<Box<GpuMeasurement>>,
    ) -> Result<(), Failed> {
        let batch = self.batch();
        if self.free.take(batch, |item| magazine.push_back(item)) {
            return Ok(());
        }
        let made = driver.relaxed(|| {
            driver.with_context(self.raw, || {
                self.make(driver, batch.min(MADE_AT_ONCE), magazine)
            })
        });
        // What was made is used; the rest is asked for again.
        if magazine.is_empty() { made } else { Ok(()) }
    }

    /// How many items a thread takes at once: fewer as the pool comes near its cap, down to the one that it
    /// needs, so that threads which have some at hand and do nothing leave the others theirs.
    fn batch(&self) -> usize {
        let in_use = self.pairs().saturating_sub(self.free.len());
        let left = self.free.capacity().saturating_sub(in_use);
        (left / (2 * MAGAZINE_SIZE)).clamp(1, MAGAZINE_SIZE)
    }

    /// Makes pairs in the current context, as many as are wanted and the cap allows.
    fn make(
        &'static self,
        driver: &impl EventApi,
        wanted: usize,
        into: &mut impl Extend<Box<GpuMeasurement>>,
    ) -> Result<(), Failed> {
        for _ in 0..wanted {
            let others = self.pairs.fetch_add(1, Relaxed);
            if others >= self.free.capacity() {
                self.one_less();
                return Ok(());
            }
            self.free.reserve(others + 1);
            match self.make_one(driver) {
                Ok(pair) => into.extend([GpuMeasurement::new(Some(pair))]),
                Err(failed) => {
                    self.one_less();
                    return Err(failed);
                }
            }
        }
        Ok(())
    }

    /// A pair that was never recorded; none where the cap is reached.
    #[cold]
    pub(crate) fn make_for_graph(
        &'static self,
        driver: &impl EventApi,
    ) -> Result<Option<Box<GpuMeasurement>>, Failed> {
        let mut made: Vec<Box<GpuMeasurement>> = Vec::new();
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

    fn generation(&self) -> MutexGuard<'_, Vec<&'static AtomicU32>> {
        self.generation.lock()
    }

    /// Keeps what is to outlive a pair.
    pub(crate) fn forget(&self, pair: &Pair) {
        let _busy = ReentrancyGuard::try_enter();
        pair.generation.fetch_add(1, Relaxed);
        self.generation().push(pair.generation);
    }

    /// The context may have come to its end meanwhile, and its count to zero.
    fn one_less(&self) {
        let less = |pairs: usize| pairs.checked_sub(1);
        let _ = self.pairs.fetch_update(Relaxed, Relaxed, less);
    }

    fn make_one(&'static self, driver: &impl EventApi) -> Result<Pair, Failed> {
        let epoch = self.epoch();
        let begin = driver.create_event()?;
        match driver.create_event() {
            Ok(end) => {
                // Not to be held while one is made: an allocator may be measured.
                let known = self.generation().pop();
                Ok(Pair {
                    begin,
                    end,
                    context: self,
                    generation: known.unwrap_or_else(|| Box::leak(Box::default())),
                    epoch,
                    is_graph: false,
                })
            }
            Err(failed) => {
                driver.destroy_event(begin);
                Err(failed)
            }
        }
    }

    /// Takes an item back.
    pub(crate) fn put_back(&self, item: Box<GpuMeasurement>) {
        let Some(pair) = item.pair else { return };
        if pair.epoch == self.epoch() && !self.has_failed() {
            pair.generation.fetch_add(1, Relaxed);
            // There is room for as many as were made; one of an earlier life may have come in between.
            if self.free.put(item).is_err() {
                self.one_less();
                self.forget(&pair);
            }
        } else {
            self.forget(&pair);
        }
    }

    /// Makes it cheaper for the measured threads to take what came back, on the resolver's thread; near the cap, they
    /// take single ones.
    pub(crate) fn fill_magazines(&self) {
        if self.batch() == MAGAZINE_SIZE {
            self.free.fill_magazines();
        } else {
            self.free.empty_magazines();
        }
    }

    /// Makes the pool twice as large as what is in use of it, on the resolver's thread, so that the measured
    /// threads need not make events.
    pub(crate) fn grow_if_low(&'static self, driver: &impl EventApi) {
        let pairs = self.pairs.load(Relaxed);
        let in_use = pairs.saturating_sub(self.free.len());
        if self.has_failed() || pairs < 2 * MADE_AT_ONCE || 2 * in_use <= pairs {
            return;
        }
        let wanted = 2 * in_use - pairs;
        let mut made: Vec<Box<GpuMeasurement>> = Vec::new();
        // What goes wrong here goes wrong for who needs a pair, and is said there.
        let _ = driver.with_context(self.raw, || self.make(driver, wanted, &mut made));
        for item in made {
            self.put_back(item);
        }
    }

    /// Destroys pairs that nobody needs, but for `keep` of them.
    pub(crate) fn shrink_to(&self, driver: &impl EventApi, keep: usize) {
        if self.has_failed() || self.free.len() <= keep {
            return;
        }
        let _ = driver.with_context(self.raw, || {
            let destroy = |item: Box<GpuMeasurement>| {
                item.pair.iter().for_each(|pair| self.destroy(driver, pair));
            };
            self.free.empty_magazines();
            while self.free.len() > keep && self.free.take(1, destroy) {}
            Ok(())
        });
    }

    fn destroy(&self, driver: &impl EventApi, pair: &Pair) {
        if pair.epoch == self.epoch() {
            driver.destroy_event(pair.begin);
            driver.destroy_event(pair.end);
            self.one_less();
        }
        self.forget(pair);
    }
}
