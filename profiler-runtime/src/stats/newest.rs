//! The newest time of a cell, which its next call counts.
//!
//! Which bucket a time belongs to follows from it in some ten dependent instructions. If a call counted its own time, the
//! next reading of the clock would wait for them. So each call stores its time here and counts the one before, which is
//! known long since.
//!
//! # Protocol
//!
//! The owner of the cell counts the newest time in its bucket, and then replaces it:
//!
//! ```text
//! bucket[of old] += 1      relaxed
//! newest = elapsed         release
//! ```
//!
//! A reader loads the newest time (acquire), then the buckets, and then the newest time once more:
//!
//! - *It is equal.* No call has ended, or calls with equal times have. Either way the time belongs to that bucket and
//!   was not in it when the bucket was read, or stands for one that was: it counts once.
//! - *It differs.* The first time has been counted, but perhaps after its bucket was read. The acquire load of the later
//!   time orders the load of that bucket, repeated now, after its increment. So the bucket is read again. The later time
//!   is left to the next reader.
//!
//! So no time is ever counted in a bucket that is not its own, and a reader sees, in each bucket, all that an earlier
//! reader saw: counts never fall. Readers exclude each other with the lock of the name, which orders them.

use crate::sync::primitive::AtomicU64;
use crate::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::primitive::atomic::fence;
use crate::sync::primitive::const_unless_loom;

/// The newest time in ticks, or [`NONE`](Self::NONE).
#[repr(transparent)]
pub(super) struct Newest(AtomicU64);

/// The state of the newest time, as a reader knows it once it has read the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// There is none.
    Nothing,
    /// It is in no bucket yet.
    Uncounted(i64),
    /// It may have been counted after its bucket was read: read that once more.
    Counted(i64),
}

impl Newest {
    /// No time. No call is as short.
    const NONE: u64 = 1 << 63;

    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self(AtomicU64::new(Self::NONE))
        }
    }

    /// Returns the newest time to its owner. If there is none, returns a time that no call has: [`i64::MIN`].
    #[inline(always)]
    pub(super) fn get(&self) -> i64 {
        self.0.load(Relaxed).cast_signed()
    }

    /// Returns `true` if there is a time.
    pub(super) fn is_some(&self) -> bool {
        self.0.load(Relaxed) != Self::NONE
    }

    /// Replaces the newest time, which the owner has counted.
    #[inline(always)]
    pub(super) fn set(&self, elapsed: i64) {
        self.0.store(elapsed.cast_unsigned(), Release);
    }

    /// Removes the newest time, which the owner has counted.
    pub(super) fn clear(&self) {
        self.0.store(Self::NONE, Release);
    }

    /// Calls `read_buckets`, and returns what to do about the newest time.
    pub(super) fn around(&self, read_buckets: impl FnOnce(Option<i64>)) -> Pending {
        let before = self.0.load(Acquire);
        if before == Self::NONE {
            read_buckets(None);
            return Pending::Nothing;
        }
        let time = before.cast_signed();
        read_buckets(Some(time));
        // Orders the loads of the buckets before the next one: without it, a bucket that is read late could have counted
        // the time that this load finds uncounted.
        fence(Acquire);
        if self.0.load(Acquire) == before {
            Pending::Uncounted(time)
        } else {
            Pending::Counted(time)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_uncounted_until_it_is_replaced() {
        let newest = Newest::new();
        assert!(!newest.is_some());
        assert_eq!(
            newest.around(|time| assert_eq!(time, None)),
            Pending::Nothing
        );
        newest.set(5);
        assert_eq!(
            newest.around(|time| assert_eq!(time, Some(5))),
            Pending::Uncounted(5)
        );
        assert_eq!(newest.around(|_| newest.set(7)), Pending::Counted(5));
        assert_eq!((newest.get(), newest.is_some()), (7, true));
        newest.clear();
        assert_eq!(
            newest.around(|_| newest.set(7)),
            Pending::Nothing,
            "left to the next reader"
        );
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::sync::primitive::AtomicU32;

    #[derive(Default)]
    struct Cell {
        newest: Newest,
        buckets: [AtomicU32; 2],
    }

    impl Default for Newest {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Cell {
        fn record(&self, elapsed: usize) {
            if self.newest.is_some() {
                let bucket = &self.buckets[usize::try_from(self.newest.get()).unwrap()];
                bucket.store(bucket.load(Relaxed) + 1, Relaxed);
            }
            self.newest.set(i64::try_from(elapsed).unwrap());
        }

        fn read(&self) -> [u32; 2] {
            let mut counts = [0; 2];
            let load = |bucket: usize| self.buckets[bucket].load(Relaxed);
            match self.newest.around(|_| counts = [load(0), load(1)]) {
                Pending::Nothing => {}
                Pending::Uncounted(time) => counts[usize::try_from(time).unwrap()] += 1,
                Pending::Counted(time) => {
                    let bucket = usize::try_from(time).unwrap();
                    counts[bucket] = load(bucket);
                }
            }
            counts
        }
    }

    #[test]
    fn no_time_is_in_a_wrong_bucket_and_no_count_falls() {
        for times in [[0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 0]] {
            loom::model(move || {
                let cell = Arc::new(Cell::default());
                let its_own = Arc::clone(&cell);
                let owner = thread::spawn(move || times.map(|time| its_own.record(time)));
                let (first, second) = (cell.read(), cell.read());
                owner.join().unwrap();
                let last = cell.read();
                let count = |bucket| times.iter().filter(|time| **time == bucket).count() as u32;
                assert_eq!(last, [count(0), count(1)]);
                for bucket in 0..2 {
                    let seen = [first[bucket], second[bucket], last[bucket]];
                    assert!(seen.is_sorted(), "{seen:?}");
                }
            });
        }
    }
}
