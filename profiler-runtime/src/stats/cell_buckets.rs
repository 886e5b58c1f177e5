//! The histogram buckets of one cell, and how they are emptied before they overflow.
//!
//! # Protocol
//!
//! A bucket has 32 bits, to halve the memory of a cell, and is moved to the 64-bit totals of its name before it
//! overflows.
//!
//! | state | count | who acts |
//! |---|---|---|
//! | counting | below `SPILL_AT` | the thread that owns the cell increments: a relaxed load and store |
//! | full | from `SPILL_AT` | the owner still increments, and each increment asks for a spill |
//! | spilled | 0 | the owner, which holds the lock of the totals, has added the count there |
//!
//! Only the owner writes, so no increment is lost. A reader adds up the totals and the buckets under the same lock. If
//! its critical section comes before the spill, the lock orders its loads before the store of zero, and the totals do
//! not have the count yet. If it comes after the spill, the lock orders the store of zero before its loads, and the
//! totals have the count. So a call is never counted twice, nor missed once it was seen; relaxed accesses suffice.
//!
//! The owner may have to put a spill off: without memory for the totals, or inside the profiler itself. From
//! `SPILL_AT`, 2³¹ in a cell, there are as many calls again until the bucket overflows, and each asks anew.

use crate::sync::primitive::AtomicU32;
use crate::sync::primitive::atomic::Ordering::Relaxed;

/// `N` buckets, which are to be spilled from a count of `SPILL_AT`.
pub(super) struct CellBuckets<const N: usize, const SPILL_AT: u32>([AtomicU32; N]);

impl<const N: usize, const SPILL_AT: u32> CellBuckets<N, SPILL_AT> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; N])
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }

    /// Increments a bucket. Returns `true` if [`spill`](Self::spill) is to be called, and `None` if there is no such
    /// bucket.
    #[inline(always)]
    pub(super) fn increment(&self, index: usize) -> Option<bool> {
        let bucket = self.0.get(index)?;
        let count = bucket.load(Relaxed) + 1;
        bucket.store(count, Relaxed);
        Some(count >= SPILL_AT)
    }

    /// Moves the counts of full buckets to `add`. Called by the owner, with the lock of the totals held.
    pub(super) fn spill(&self, mut add: impl FnMut(usize, u64)) {
        for (index, bucket) in self.0.iter().enumerate() {
            let count = bucket.load(Relaxed);
            if count >= SPILL_AT {
                add(index, count.into());
                bucket.store(0, Relaxed);
            }
        }
    }

    /// Passes all counts to `add`. Called with the lock of the totals held.
    pub(super) fn read(&self, mut add: impl FnMut(usize, u64)) {
        for (index, bucket) in self.0.iter().enumerate() {
            add(index, bucket.load(Relaxed).into());
        }
    }

    /// Sets all counts to zero. Called by the owner, or when there is none.
    pub(super) fn reset(&self) {
        for bucket in &self.0 {
            bucket.store(0, Relaxed);
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn set(&self, index: usize, count: u32) {
        self.0[index].store(count, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn full_buckets_are_spilled_and_the_others_stay() {
        let buckets = CellBuckets::<3, 2>::new();
        assert_eq!(buckets.increment(0), Some(false));
        assert_eq!(buckets.increment(1), Some(false));
        assert_eq!(buckets.increment(1), Some(true));
        assert_eq!(buckets.increment(1), Some(true), "until it is spilled");
        assert_eq!(buckets.increment(3), None);
        let (mut spilled, mut left) = (Vec::new(), Vec::new());
        buckets.spill(|index, count| spilled.push((index, count)));
        buckets.read(|_, count| left.push(count));
        assert_eq!((spilled, left), (vec![(1, 3)], vec![1, 0, 0]));
        buckets.reset();
        buckets.read(|_, count| assert_eq!(count, 0));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;

    type Shared = (CellBuckets<1, 2>, Mutex<u64>);

    fn read((buckets, totals): &Shared) -> u64 {
        let totals = totals.lock().unwrap();
        let mut count = *totals;
        buckets.read(|_, more| count += more);
        count
    }

    #[test]
    fn a_spill_counts_no_call_twice_and_hides_none() {
        loom::model(|| {
            let shared: Arc<Shared> = Arc::new((CellBuckets::new(), Mutex::new(0)));
            let its_own = Arc::clone(&shared);
            let owner = thread::spawn(move || {
                let (buckets, totals) = &*its_own;
                for _ in 0..3 {
                    if buckets.increment(0) == Some(true) {
                        let mut totals = totals.lock().unwrap();
                        buckets.spill(|_, count| *totals += count);
                    }
                }
            });
            let (first, second) = (read(&shared), read(&shared));
            assert!(first <= second && second <= 3, "{first}, then {second}");
            owner.join().unwrap();
            assert_eq!(read(&shared), 3);
        });
    }
}
