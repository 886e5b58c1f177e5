//! The other ends of threads' rings.

use std::sync::MutexGuard;

use crate::sync::Lock;
use crate::sync::ring::{self, Consumer, Producer};

/// What all threads push into, each into a ring of its own: looked at by the thread that empties them and by
/// `flush`, and by a thread that makes its ring.
pub(crate) struct Rings<T>(Lock<Vec<Consumer<T>>>);

impl<T> Rings<T> {
    pub(crate) const fn new() -> Self {
        Self(Lock::new(Vec::new()))
    }

    fn rings(&self) -> MutexGuard<'_, Vec<Consumer<T>>> {
        self.0.lock()
    }

    /// A thread's end of a new ring; none where there is no memory for it.
    pub(crate) fn make(&self, capacity: usize) -> Option<Producer<T>> {
        let (producer, consumer) = ring::ring(capacity)?;
        let mut rings = self.rings();
        rings.try_reserve(1).ok()?;
        rings.push(consumer);
        Some(producer)
    }

    /// Moves what stands in the rings now to `batch`, and forgets the rings of threads that have ended.
    ///
    /// The rings' capacity bounds what one call moves. `note` gets how many these are, before anybody can see that they
    /// are not in the rings.
    pub(crate) fn drain(&self, batch: &mut Vec<T>, note: impl FnOnce(usize)) {
        let before = batch.len();
        let mut rings = self.rings();
        rings.retain_mut(|ring| {
            // Asked before the last look: what was pushed before the thread ended is there to be read.
            let ended = ring.is_abandoned();
            for _ in 0..ring.slots() {
                batch.extend(ring.pop());
            }
            !ended
        });
        note(batch.len() - before);
    }

    /// How much waits in the rings.
    pub(crate) fn waiting(&self) -> usize {
        self.with_waiting(|waiting| waiting)
    }

    /// Runs `f` with how much waits in the rings, while nobody takes any of it.
    pub(crate) fn with_waiting<R>(&self, f: impl FnOnce(usize) -> R) -> R {
        let rings = self.rings();
        f(rings.iter().map(Consumer::slots).sum())
    }
}
