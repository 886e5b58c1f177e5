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
//! newest = BUSY            relaxed
//!                          fence, release
//! bucket[of old] += 1      relaxed
//! newest = elapsed         release
//! ```
//!
//! A reader waits until the newest time is not `BUSY`, which does not tell whether the time is in its bucket. It reads the
//! buckets and then, behind a fence (acquire), the newest time again:
//!
//! - *It is equal.* No time has been counted meanwhile, or the last of those that were is equal to the first. If
//!   the reader saw an increment, the two fences order its second load after `BUSY`; so the
//!   second time is a later one, which stands for itself. Either way one time is in no bucket that was read.
//! - *It differs.* The first time has been counted, or is being counted, but perhaps after its bucket was read. The reader
//!   waits until the owner is not busy any more; this acquire load orders a repeated load of the bucket after the
//!   increment. The later time is left to the next reader.
//!
//! So no time is counted twice or in a bucket that is not its own, and a reader sees, in each bucket, all that an earlier
//! reader saw: counts never fall. Readers exclude each other with the lock of the name, which orders them.
//!
//! The owner is busy for a few instructions. If it is preempted there, a reader gives its processor away, and after
//! [`PATIENCE`] tries leaves the time out: a count may then be one too low.

use profiler_host::sync::primitive::AtomicU64;
use profiler_host::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use profiler_host::sync::primitive::atomic::fence;
use profiler_host::sync::primitive::{const_unless_loom, thread};

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
    /// The owner is counting a time. No call is as short either, and an instruction can hold it.
    const BUSY: u64 = (i32::MIN as i64).cast_unsigned();

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

    /// Announces that the owner counts the newest time.
    #[inline(always)]
    pub(super) fn begin_counting(&self) {
        self.0.store(Self::BUSY, Relaxed);
        // Not a release of the increment, which could not be one instruction then.
        fence(Release);
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
        let before = self.load();
        if before == Self::NONE || before == Self::BUSY {
            read_buckets(None);
            return Pending::Nothing;
        }
        let time = before.cast_signed();
        read_buckets(Some(time));
        fence(Acquire);
        if self.0.load(Acquire) == before {
            Pending::Uncounted(time)
        } else {
            self.load();
            Pending::Counted(time)
        }
    }

    /// Loads the newest time once the owner is not busy.
    fn load(&self) -> u64 {
        for _ in 0..PATIENCE {
            let newest = self.0.load(Acquire);
            if newest != Self::BUSY {
                return newest;
            }
            thread::yield_now();
        }
        Self::BUSY
    }
}

/// The tries of a reader that finds the owner counting.
const PATIENCE: u32 = 1000;

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
    use std::sync::atomic::AtomicUsize;

    use loom::sync::Arc;

    use super::*;
    use profiler_host::sync::primitive::AtomicU32;

    struct Cell {
        newest: Newest,
        buckets: [AtomicU32; 2],
    }

    impl Cell {
        fn new() -> Self {
            Self {
                newest: Newest::new(),
                buckets: [AtomicU32::new(0), AtomicU32::new(0)],
            }
        }

        /// Records times as the owner does. It remembers what it wrote: loom would otherwise forget the earlier loads of
        /// readers when the owner loads, and leave out the orders in which they matter.
        fn record(&self, times: &[usize]) {
            let mut counts = [0; 2];
            let mut newest: Option<usize> = None;
            // At last none, as on a thread that ends.
            for time in times.iter().map(Some).chain([None]) {
                if let Some(bucket) = newest {
                    self.newest.begin_counting();
                    counts[bucket] += 1;
                    self.buckets[bucket].store(counts[bucket], Relaxed);
                }
                newest = time.copied();
                match newest {
                    Some(time) => self.newest.set(i64::try_from(time).unwrap()),
                    None => self.newest.clear(),
                }
            }
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
        for times in [[0, 1, 0], [0, 1, 1], [0, 0, 1]] {
            let executions = std::sync::Arc::new(AtomicUsize::new(0));
            let counted = std::sync::Arc::clone(&executions);
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(3);
            model.check(move || {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let cell = Arc::new(Cell::new());
                let its_own = Arc::clone(&cell);
                let owner = thread::spawn(move || its_own.record(&times));
                let (first, second) = (cell.read(), cell.read());
                owner.join().unwrap();
                let last = cell.read();
                let count = |bucket| times.iter().map(|time| u32::from(*time == bucket)).sum();
                assert_eq!(last, [count(0), count(1)]);
                for bucket in 0..2 {
                    let seen = [first[bucket], second[bucket], last[bucket]];
                    assert!(seen.is_sorted(), "{times:?}: {seen:?}");
                }
            });
            let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
            assert!(executions > 50, "loom tried only {executions} orders");
        }
    }
}
