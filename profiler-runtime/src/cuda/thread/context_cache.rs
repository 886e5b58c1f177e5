//! The events that a thread has at hand for a context.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::scope::loss_of;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::ffi::EventApi;
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver;

/// A context that the thread has met, and the events it has at hand for it.
pub(crate) struct ContextCache {
    pub(crate) context: &'static Context,
    /// Taken in the order in which they came back: the next one is where the processor expects it.
    pub(crate) magazine: VecDeque<Box<GpuMeasurement>>,
}

impl ContextCache {
    #[inline]
    pub(crate) fn take(&mut self, driver: &impl EventApi) -> Result<Box<GpuMeasurement>, CudaLoss> {
        loop {
            match self.magazine.pop_front() {
                Some(item) if self.context.is_current_epoch(&item) => {
                    // That of the next scope: the resolver's processor has it still.
                    if let Some(next) = self.magazine.front() {
                        next.prefetch();
                    }
                    return Ok(item);
                }
                // Of an earlier life of the context: its events went with it.
                Some(item) => item.give_back(),
                None => self.refill(driver)?,
            }
        }
    }

    #[cold]
    fn refill(&mut self, driver: &impl EventApi) -> Result<(), CudaLoss> {
        let context = self.context;
        let refilled = context.refill(driver, &mut self.magazine);
        // It makes more, or gives back what the device has passed.
        if context.is_low() {
            resolver::wake();
        }
        refilled.map_err(|failed| loss_of(driver, context, failed.code, failed.call))?;
        if self.magazine.is_empty() {
            return Err(CudaLoss::PoolEmpty);
        }
        Ok(())
    }

    /// Gives an item back to be used next.
    #[cold]
    pub(crate) fn put_back(&mut self, mut item: Box<GpuMeasurement>) {
        if let Some(pair) = &mut item.pair {
            pair.is_graph = false;
            pair.generation.fetch_add(1, Relaxed);
            self.magazine.push_front(item);
        }
    }
}
