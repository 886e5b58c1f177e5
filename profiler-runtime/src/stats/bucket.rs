//! One bucket of a cell's histogram, and how it is emptied before it overflows.
//!
//! # Protocol
//!
//! A bucket has 32 bits, to halve the memory of a cell, and is moved to the 64-bit totals of its name before it
//! overflows.
//!
//! | state | count | who acts |
//! |---|---|---|
//! | counting | below [`SPILL_AT`] | the thread that owns the cell increments: a load and a store |
//! | to be spilled | [`SPILL_AT`] or more | the owner increments, and spills the bucket when it next looks |
//! | spilled | 0 | the owner, with the lock of the name held, has added the count to the totals and stored zero |
//!
//! Only the owner writes, so no increment is lost. A reader adds up the totals and the buckets under the same lock. If
//! its critical section comes before the spill, the lock orders its loads before the store of zero, and the totals do
//! not have the count yet. If it comes after the spill, the lock orders the store of zero before its loads, and the
//! totals have the count. So a call is never counted twice, nor missed once it was seen; relaxed accesses suffice.
//!
//! The owner looks at all its buckets once in 2²⁶ scopes, and may have to put a spill off: without memory for the totals, or
//! inside the profiler itself. From [`SPILL_AT`] there are as many calls again until the bucket overflows.

use profiler_host::sync::primitive::AtomicU32;
use profiler_host::sync::primitive::atomic::Ordering::Relaxed;
use profiler_host::sync::primitive::const_unless_loom;

/// Half of what a bucket holds.
#[cfg(not(loom))]
pub(super) const SPILL_AT: u32 = 1 << 31;
#[cfg(loom)]
pub(super) const SPILL_AT: u32 = 2;

/// One bucket.
#[repr(transparent)]
pub(super) struct Bucket(AtomicU32);

impl Bucket {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Counts a call, and returns the new count: from [`SPILL_AT`] on, the bucket is to be spilled.
    #[inline(always)]
    pub(super) fn increment(&self) -> u32 {
        let count = self.0.load(Relaxed).wrapping_add(1);
        self.0.store(count, Relaxed);
        count
    }

    pub(super) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Sets the count. Called by the owner, or when there is none.
    pub(super) fn set(&self, count: u32) {
        self.0.store(count, Relaxed);
    }

    /// Moves the count to `add` if the bucket is to be spilled. Called by the owner, with the lock of the totals held.
    pub(super) fn spill(&self, add: impl FnOnce(u64)) {
        let count = self.get();
        if count >= SPILL_AT {
            add(count.into());
            self.set(0);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_is_spilled_and_another_one_stays() {
        let mut spilled = Vec::new();
        let bucket = Bucket::new();
        bucket.set(SPILL_AT - 1);
        bucket.spill(|count| spilled.push(count));
        assert!(spilled.is_empty());
        assert!(bucket.increment() >= SPILL_AT);
        assert!(bucket.increment() >= SPILL_AT, "until it is spilled");
        bucket.spill(|count| spilled.push(count));
        assert_eq!((bucket.get(), spilled), (0, vec![(1 << 31) + 1]));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;

    type Shared = (Bucket, Mutex<u64>);

    fn read((bucket, totals): &Shared) -> u64 {
        let totals = totals.lock().unwrap();
        *totals + u64::from(bucket.get())
    }

    #[test]
    fn a_spill_counts_no_call_twice_and_hides_none() {
        loom::model(|| {
            let shared: Arc<Shared> = Arc::new((Bucket::new(), Mutex::new(0)));
            let its_own = Arc::clone(&shared);
            let owner = thread::spawn(move || {
                let (bucket, totals) = &*its_own;
                for _ in 0..3 {
                    if bucket.increment() >= SPILL_AT {
                        let mut totals = totals.lock().unwrap();
                        bucket.spill(|count| *totals += count);
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
