//! Values that share no cache line with others.

use std::ops::Deref;

/// Pads a value to two cache lines, which some processors fetch as a pair: otherwise a write by one thread would
/// invalidate what the other thread writes (false sharing).
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
