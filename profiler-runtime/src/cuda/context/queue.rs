//! The bounded lock-free queue of the pools.

#[cfg(any(feature = "cuda", test))]
pub(super) use crossbeam_queue::ArrayQueue;

/// A queue that takes nothing: without the feature `cuda` no driver is found, so there is no context and no pool.
#[cfg(not(any(feature = "cuda", test)))]
#[derive(Debug)]
pub(super) struct ArrayQueue<T>(std::marker::PhantomData<fn(T) -> T>);

#[cfg(not(any(feature = "cuda", test)))]
#[allow(clippy::unused_self, reason = "the methods of the other queue")]
impl<T> ArrayQueue<T> {
    pub(super) fn new(_capacity: usize) -> Self {
        Self(std::marker::PhantomData)
    }

    pub(super) fn push(&self, value: T) -> Result<(), T> {
        Err(value)
    }

    pub(super) fn pop(&self) -> Option<T> {
        None
    }

    pub(super) fn len(&self) -> usize {
        0
    }

    pub(super) fn capacity(&self) -> usize {
        0
    }

    pub(super) fn is_full(&self) -> bool {
        true
    }
}
