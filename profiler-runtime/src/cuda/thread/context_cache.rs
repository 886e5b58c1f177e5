//! A thread's magazine of free event pairs for one context.

use std::sync::atomic::Ordering::Relaxed;

use profiler_report::CudaLoss;

use super::recording::loss_of;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::context::pairs::Magazine;
use crate::cuda::context::pool::MAGAZINE_SIZE;
use crate::cuda::ffi::EventApi;
use crate::cuda::resolver;

/// A context that the thread has used, and the free pairs that it has for it.
pub(crate) struct ContextCache {
    pub(crate) context: &'static Context,
    /// The next one is the last.
    magazine: Magazine,
}

impl ContextCache {
    pub(crate) fn new(context: &'static Context) -> Self {
        Self {
            context,
            magazine: Magazine::with_capacity(MAGAZINE_SIZE),
        }
    }

    /// Takes a pair of the current epoch. Refills the magazine if it is empty.
    #[inline(always)]
    pub(crate) fn take(&mut self, driver: &impl EventApi) -> Result<Box<GpuMeasurement>, CudaLoss> {
        loop {
            match self.magazine.pop() {
                Some(measurement) if self.context.is_current_epoch(&measurement) => {
                    // Fetch the lines that the next scope uses: the resolver's core had them last, and the transfer
                    // overlaps this scope.
                    if let Some(next) = self.magazine.last() {
                        next.prefetch();
                    }
                    return Ok(measurement);
                }
                // The events were destroyed with their context.
                Some(measurement) => measurement.give_back(),
                None => self.refill(driver)?,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, driver: &impl EventApi) -> Result<(), CudaLoss> {
        let context = self.context;
        let in_pool = context.in_pool();
        let refilled = context.refill(driver, &mut self.magazine, in_pool);
        // The resolver makes more pairs, or returns those that the device has passed.
        if context.is_low(in_pool.saturating_sub(self.magazine.len())) {
            resolver::wake_for_pairs();
        }
        refilled.map_err(|failed| loss_of(driver, context, failed.code, failed.call))?;
        if self.magazine.is_empty() {
            return Err(CudaLoss::PoolEmpty);
        }
        Ok(())
    }

    /// Puts back a pair whose first event could not be recorded. The next scope takes it.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_back(&mut self, mut measurement: Box<GpuMeasurement>) {
        if let Some(pair) = &mut measurement.pair {
            if pair.is_graph {
                pair.is_graph = false;
                self.context.uncount_captured();
            }
            pair.generation.fetch_add(1, Relaxed);
            self.magazine.push(measurement);
        }
    }

    /// Returns all pairs to the context's pool.
    pub(crate) fn return_magazine(&mut self) {
        self.magazine.drain(..).for_each(GpuMeasurement::give_back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::ffi::fake::FakeDriver;

    #[test]
    fn a_magazine_gives_no_pair_of_an_earlier_epoch() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        let mut cache = ContextCache::new(context);
        let first = cache.take(&driver).unwrap();
        assert!(!cache.magazine.is_empty());
        cache.put_back(first);
        context.advance_epoch();
        let next = cache.take(&driver).unwrap();
        assert!(context.is_current_epoch(&next));
    }

    #[test]
    fn an_empty_pool_at_its_capacity_is_a_loss() {
        let (context, driver) = (Context::with_capacity(1), FakeDriver::new());
        let mut cache = ContextCache::new(context);
        let only = cache.take(&driver).unwrap();
        assert_eq!(cache.take(&driver).unwrap_err(), CudaLoss::PoolEmpty);
        cache.put_back(only);
        assert!(cache.take(&driver).is_ok());
    }

    #[test]
    fn a_returned_magazine_is_in_the_pool() {
        let (context, driver) = (Context::with_capacity(4096), FakeDriver::new());
        let mut cache = ContextCache::new(context);
        let measurement = cache.take(&driver).unwrap();
        cache.put_back(measurement);
        cache.return_magazine();
        let made = driver.events();
        assert!(cache.take(&driver).is_ok());
        assert_eq!(driver.events(), made, "no event was made");
    }
}
