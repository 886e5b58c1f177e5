//! The events that a thread has at hand for a context.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use super::context::Context;
use super::driver::Driver;
use super::item::Parcel;
use super::loss::CudaLoss;
use super::resolver;
use super::scope::loss_of;

/// A context that the thread has met, and the events it has at hand for it.
pub(super) struct Known {
    pub(super) context: &'static Context,
    /// Taken in the order in which they came back: the next one is where the processor expects it.
    pub(super) stash: VecDeque<Parcel>,
}

impl Known {
    #[inline]
    pub(super) fn take(&mut self, driver: &Driver) -> Result<Parcel, CudaLoss> {
        loop {
            match self.stash.pop_front() {
                Some(item) if self.context.is_of_this_life(&item) => {
                    // That of the next scope: the resolver's processor has it still.
                    if let Some(next) = self.stash.front() {
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
    fn refill(&mut self, driver: &Driver) -> Result<(), CudaLoss> {
        let context = self.context;
        let refilled = context.refill(driver, &mut self.stash);
        // It makes more, or gives back what the device has passed.
        if context.is_low() {
            resolver::wake();
        }
        refilled.map_err(|failed| loss_of(driver, context, failed.code, failed.call))?;
        if self.stash.is_empty() {
            return Err(CudaLoss::PoolEmpty);
        }
        Ok(())
    }

    /// Gives an item back to be used next.
    #[cold]
    pub(super) fn put_back(&mut self, mut item: Parcel) {
        if let Some(pair) = &mut item.pair {
            pair.is_graph = false;
            pair.turns.fetch_add(1, Relaxed);
            self.stash.push_front(item);
        }
    }
}
