//! Buckets of rare times: a few, each with its number.
//!
//! Most times outside the window of a cell are there once or twice: the first call, which finds cold caches, or one that was
//! preempted. A chunk for the octave of each would be sixteen buckets for one call. So the first few buckets outside the
//! window are in the cell, and chunks come after them.
//!
//! The owner of the cell takes a free bucket without the lock of the name. A reader may then see the number or not; the count
//! is behind the protocol of the [newest time](super::newest), which orders it after the number. A bucket gets another number
//! only with the lock held, under which all reading is done.

use profiler_host::sync::primitive::atomic::{AtomicU16, Ordering::Relaxed};

use super::bucket::Bucket;

/// The number of buckets: as many as make a cell ten cache lines.
const RARE: usize = if cfg!(loom) { 2 } else { 14 };

/// A few buckets that are found by their numbers.
// The numbers are apart from the counts, which would otherwise be padded.
#[repr(C)]
pub(super) struct RareBuckets {
    buckets: [Bucket; RARE],
    /// One more than the number of each bucket; 0 for a free one, whose count is zero.
    numbers: [AtomicU16; RARE],
}

impl RareBuckets {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self {
            buckets: [const { Bucket::new() }; RARE],
            numbers: [const { AtomicU16::new(0) }; RARE],
        }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| Bucket::new()),
            numbers: std::array::from_fn(|_| AtomicU16::new(0)),
        }
    }

    /// Returns the buckets that have a number, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Bucket)> {
        let all = self.numbers.iter().zip(&self.buckets);
        all.filter_map(|(number, bucket)| {
            let index = number.load(Relaxed).checked_sub(1)?;
            Some((index.into(), bucket))
        })
    }

    pub(super) fn find(&self, index: usize) -> Option<&Bucket> {
        let wanted = u16::try_from(index + 1).ok()?;
        let is_wanted = |number: &AtomicU16| number.load(Relaxed) == wanted;
        self.buckets.get(self.numbers.iter().position(is_wanted)?)
    }

    /// Returns how many buckets are free.
    pub(super) fn room(&self) -> usize {
        RARE - self.iter().count()
    }

    /// Returns the bucket with this number, which a free one gets if there is none. Called by the owner.
    pub(super) fn claim(&self, index: usize) -> Option<&Bucket> {
        if let Some(bucket) = self.find(index) {
            return Some(bucket);
        }
        let wanted = u16::try_from(index + 1).ok()?;
        let mut all = self.numbers.iter().zip(&self.buckets);
        // An exchange, in case that a signal handler, which may make measured calls, takes the bucket first.
        let (_, bucket) =
            all.find(|(number, _)| number.compare_exchange(0, wanted, Relaxed, Relaxed).is_ok())?;
        Some(bucket)
    }

    /// Passes the counts of the buckets for whose number `is_removed` returns `true` to `add`, and frees the buckets. Called
    /// by the owner with the lock of the name held.
    pub(super) fn remove(
        &self,
        is_removed: impl Fn(usize) -> bool,
        mut add: impl FnMut(usize, u32),
    ) {
        for (number, bucket) in self.numbers.iter().zip(&self.buckets) {
            let Some(index) = number.load(Relaxed).checked_sub(1).map(usize::from) else {
                continue;
            };
            if is_removed(index) {
                let count = bucket.get();
                bucket.set(0);
                number.store(0, Relaxed);
                add(index, count);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn counts(rare: &RareBuckets) -> Vec<(usize, u32)> {
        let mut counts: Vec<_> = rare.iter().map(|(index, it)| (index, it.get())).collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn a_bucket_keeps_its_number() {
        let rare = RareBuckets::new();
        for index in [700, 0, 700, 31] {
            let bucket = rare.claim(index).expect("there is room");
            bucket.increment();
            assert!(rare.find(index).is_some_and(|it| std::ptr::eq(it, bucket)));
        }
        assert_eq!(counts(&rare), [(0, 1), (31, 1), (700, 2)]);
        assert!(rare.find(1).is_none());
        assert_eq!(rare.room(), RARE - 3);
    }

    #[test]
    fn there_are_only_so_many() {
        let rare = RareBuckets::new();
        for index in 0..RARE {
            assert!(rare.claim(index).is_some());
        }
        assert!(rare.claim(RARE).is_none() && rare.claim(3).is_some());
        assert_eq!(rare.room(), 0);
    }

    #[test]
    fn a_removed_bucket_is_free_and_empty() {
        let rare = RareBuckets::new();
        for index in 0..RARE {
            rare.claim(index).expect("there is room").increment();
        }
        let mut removed = Vec::new();
        rare.remove(
            |index| index % 2 == 0,
            |index, count| removed.push((index, count)),
        );
        let even: Vec<_> = (0..RARE).step_by(2).map(|index| (index, 1)).collect();
        assert_eq!(removed, even);
        assert_eq!(rare.claim(100).map(Bucket::get), Some(0));
        rare.remove(|_| true, |_, _| {});
        assert_eq!(rare.room(), RARE);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::AtomicUsize;

    use loom::sync::Arc;

    use super::super::newest::{Newest, Pending};
    use super::*;
    use profiler_host::sync::primitive::thread;

    #[derive(Clone)]
    struct Cell {
        newest: Arc<Newest>,
        rare: Arc<RareBuckets>,
    }

    impl Cell {
        fn new() -> Self {
            Self {
                newest: Arc::new(Newest::new()),
                rare: Arc::new(RareBuckets::new()),
            }
        }

        /// Records times, each of which has a bucket of its own, as the owner does. Only stores: loom would forget the
        /// earlier loads of readers when the owner loads.
        fn record(&self, times: &[u16]) {
            let buckets = self.rare.numbers.iter().zip(&self.rare.buckets);
            self.newest.set(times[0].into());
            for ((number, bucket), pair) in buckets.zip(times.windows(2)) {
                number.store(pair[0] + 1, Relaxed);
                self.newest.begin_counting();
                bucket.set(1);
                self.newest.set(pair[1].into());
            }
        }

        fn counts(&self) -> [u32; 3] {
            let mut counts = [0; 3];
            for (index, bucket) in self.rare.iter() {
                counts[index] += bucket.get();
            }
            counts
        }

        fn read(&self) -> [u32; 3] {
            let mut counts = [0; 3];
            match self.newest.around(|_| counts = self.counts()) {
                Pending::Nothing => {}
                Pending::Uncounted(time) => counts[usize::try_from(time).unwrap()] += 1,
                Pending::Counted(time) => {
                    let index = usize::try_from(time).unwrap();
                    counts[index] = self.counts()[index];
                }
            }
            counts
        }
    }

    #[test]
    fn no_time_in_a_new_bucket_is_missed_or_counted_twice() {
        let executions = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&executions);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let cell = Cell::new();
            let its_own = cell.clone();
            let owner = thread::spawn(move || its_own.record(&[0, 1, 2]));
            let (first, second) = (cell.read(), cell.read());
            owner.join().unwrap();
            let last = cell.read();
            assert_eq!(last, [1, 1, 1]);
            for bucket in 0..3 {
                let seen = [first[bucket], second[bucket], last[bucket]];
                assert!(seen.is_sorted(), "{seen:?}");
            }
        });
        let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
        assert!(executions > 50, "loom tried only {executions} orders");
    }
}
