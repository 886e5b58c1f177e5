//! A lock-free pool with magazines.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use profiler_host::sync::{Queue, RaceCell};

/// The number of values in a full magazine.
pub(crate) const MAGAZINE_SIZE: usize = 32;

/// The capacity of the first segment. Each further segment has twice the capacity of the one before.
const FIRST_SEGMENT: usize = 2 * MAGAZINE_SIZE;
/// The last segment holds more than a process can have.
const SEGMENTS: usize = 32;

/// A bounded pool of free values, which any thread puts back and takes without a lock.
///
/// # Magazines
///
/// The design is that of Bonwick and Adams ("Magazines and Vmem", 2001). The resolver puts values back one by one, and
/// measured threads take them. A queue slot that another core has just written costs a cache miss, and its counters are
/// contended. So while there are plenty, the resolver moves single values into magazines of [`MAGAZINE_SIZE`], and a
/// measured thread takes a whole magazine by one operation. A value is in one of three places:
///
/// - `free`: single values, as they came back;
/// - `full`: magazines with [`MAGAZINE_SIZE`] values each;
/// - a caller's hands, between a pop from one queue and a push to another.
///
/// The queues are linearizable and each value is owned by exactly one place, so none is lost or handed out twice,
/// whatever the interleaving. While a value is in a caller's hands, [`take`](Self::take) and [`len`](Self::len) do not
/// see it: `take` may return nothing although the pool is not empty. Its callers then make new values or try again
/// later. A magazine is only taken whole, so that no other value is hidden for long. `empty` keeps the vectors of taken
/// magazines, so that no thread allocates or frees one: `magazines` counts them all, and only the resolver adds to it.
///
/// # Segments
///
/// A [`Queue`] has its full size from the start, and a program may make many contexts that need a few pairs each.
/// So the pool begins with a small segment, and adds a segment of twice the size when more values have been made than
/// fit. [`take`](Self::take) empties old segments first; [`put`](Self::put) uses only the newest, whose number is
/// stored with `Release` after the segment exists. A thread that puts a value into a segment that is not the newest any
/// more does no harm, since `take` looks at all of them. If that segment is full, the thread sees the new number when
/// it loads it again: the value did not fit because more exist than it holds, and each thread calls
/// [`reserve`](Self::reserve) before it makes a value.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    capacity: usize,
    segments: [RaceCell<Segment<T>>; SEGMENTS],
    /// The number of the segment that values are put into.
    newest: AtomicUsize,
}

#[derive(Debug)]
struct Segment<T> {
    /// Single values.
    free: Queue<T>,
    /// Full magazines.
    full: Queue<Vec<T>>,
    /// The vectors of taken magazines, for new ones.
    empty: Queue<Vec<T>>,
    /// How many magazines exist: full, empty, or in a thread's hands.
    magazines: AtomicUsize,
}

impl<T> Pool<T> {
    /// Creates a pool for at most `capacity` values. Allocates nothing.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            segments: [const { RaceCell::new() }; SEGMENTS],
            newest: AtomicUsize::new(0),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes sure that `count` values fit. Called before that many exist, so that [`put`](Self::put) never allocates.
    pub(crate) fn reserve(&self, count: usize) {
        let number = (0..SEGMENTS).find(|number| self.size(*number) >= count.min(self.capacity));
        let number = number.unwrap_or(SEGMENTS - 1);
        if number > self.newest.load(Relaxed) {
            self.segment(number);
            self.newest.fetch_max(number, Release);
        }
    }

    fn size(&self, number: usize) -> usize {
        let doubled = FIRST_SEGMENT.saturating_mul(1 << number);
        doubled.min(self.capacity)
    }

    fn segment(&self, number: usize) -> &Segment<T> {
        self.segments[number].get_or_init(|| Segment::new(self.size(number)))
    }

    fn newest_segment(&self) -> &Segment<T> {
        self.segment(self.newest.load(Acquire))
    }

    /// Returns the segments that exist, oldest first.
    fn all(&self) -> impl Iterator<Item = &Segment<T>> {
        let count = self.newest.load(Acquire) + 1;
        self.segments.iter().take(count).filter_map(RaceCell::get)
    }

    /// Returns the number of values in the pool, without those in a thread's hands.
    pub(crate) fn len(&self) -> usize {
        self.all().map(Segment::len).sum()
    }

    /// Puts a value back.
    ///
    /// # Errors
    ///
    /// Returns the value if the pool is full.
    pub(crate) fn put(&self, mut value: T) -> Result<(), T> {
        loop {
            let newest = self.newest.load(Acquire);
            match self.segment(newest).free.push(value) {
                Ok(()) => return Ok(()),
                // Another thread has added a segment since the load above.
                Err(back) if self.newest.load(Acquire) != newest => value = back,
                Err(back) => return Err(back),
            }
        }
    }

    /// Passes up to `wanted` values to `to`, or a whole magazine if there are no single ones. Returns `false` if it
    /// found none.
    pub(crate) fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
        self.all().any(|segment| segment.take(wanted, &mut to))
    }

    /// Exchanges an empty magazine for a full one. Returns `false` if there is none. Its last value came back first.
    ///
    /// The vector that is given back takes the place of the taken one, so `magazines` stays right.
    pub(crate) fn exchange(&self, magazine: &mut Vec<T>) -> bool {
        self.all().any(|segment| segment.exchange(magazine))
    }

    /// Moves single values into magazines, and leaves at least as many single values. Only one thread may call this or
    /// [`empty_magazines`](Self::empty_magazines) at a time.
    pub(crate) fn fill_magazines(&self) {
        let segment = self.newest_segment();
        while let Some(mut magazine) = segment.next_magazine() {
            magazine.extend((0..MAGAZINE_SIZE).map_while(|_| segment.free.pop()));
            // A vector is taken from at its end. The values are used in the order in which they came back, which the
            // hardware prefetcher predicts.
            magazine.reverse();
            let kept = if magazine.len() == MAGAZINE_SIZE {
                segment.full.push(magazine)
            } else {
                // Other threads have taken single values since `next_magazine` counted them.
                Err(magazine)
            };
            if let Err(magazine) = kept {
                self.empty_magazine(segment, magazine);
            }
        }
    }

    /// Turns all full magazines into single values, for when there are few.
    pub(crate) fn empty_magazines(&self) {
        for segment in self.all() {
            while let Some(magazine) = segment.full.pop() {
                self.empty_magazine(segment, magazine);
            }
        }
    }

    fn empty_magazine(&self, segment: &Segment<T>, mut magazine: Vec<T>) {
        for value in magazine.drain(..).rev() {
            // Cannot fail: the value was in the pool, which has a place for each value that exists.
            let _ = self.put(value);
        }
        let _ = segment.empty.push(magazine);
    }
}

impl<T> Segment<T> {
    fn new(capacity: usize) -> Self {
        let magazines = (capacity / MAGAZINE_SIZE).max(1);
        Self {
            free: Queue::new(capacity.max(1)),
            full: Queue::new(magazines),
            empty: Queue::new(magazines),
            magazines: AtomicUsize::new(0),
        }
    }

    fn len(&self) -> usize {
        self.free.len() + MAGAZINE_SIZE * self.full.len()
    }

    fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
        if wanted >= MAGAZINE_SIZE && self.take_magazine(&mut to) {
            return true;
        }
        let taken = (0..wanted).map_while(|_| self.free.pop()).map(&mut to);
        if taken.count() > 0 || self.take_magazine(&mut to) {
            return true;
        }
        // The resolver may have emptied the last magazine between the two attempts above.
        self.free.pop().map(to).is_some()
    }

    fn take_magazine(&self, to: impl FnMut(T)) -> bool {
        let Some(mut magazine) = self.full.pop() else {
            return false;
        };
        magazine.drain(..).rev().for_each(to);
        // Cannot fail: there is a place for each magazine.
        let _ = self.empty.push(magazine);
        true
    }

    fn exchange(&self, magazine: &mut Vec<T>) -> bool {
        debug_assert!(magazine.is_empty());
        let Some(full) = self.full.pop() else {
            return false;
        };
        // Cannot fail: there is a place for each magazine.
        let _ = self.empty.push(std::mem::replace(magazine, full));
        true
    }

    /// Returns an empty magazine if there are enough single values to fill one.
    fn next_magazine(&self) -> Option<Vec<T>> {
        if self.free.len() < 2 * MAGAZINE_SIZE || self.full.is_full() {
            return None;
        }
        self.empty.pop().or_else(|| self.new_magazine())
    }

    /// Creates a magazine, unless there are as many as `empty` holds: a thread that takes one can then always keep it
    /// there, and never frees it.
    fn new_magazine(&self) -> Option<Vec<T>> {
        // `Relaxed`, and not a read-modify-write: only one thread fills magazines.
        let magazines = self.magazines.load(Relaxed);
        if magazines == self.full.capacity() {
            return None;
        }
        self.magazines.store(magazines + 1, Relaxed);
        Some(Vec::with_capacity(MAGAZINE_SIZE))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    fn filled(count: usize) -> Pool<usize> {
        let pool = Pool::new(count);
        pool.reserve(count);
        put_all(&pool, 0..count);
        pool
    }

    fn put_all(pool: &Pool<usize>, all: impl IntoIterator<Item = usize>) {
        for value in all {
            pool.put(value).expect("there is room");
        }
    }

    fn taken(pool: &Pool<usize>, wanted: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        let any = pool.take(wanted, |value| taken.push(value));
        assert_eq!(any, !taken.is_empty());
        taken
    }

    #[test]
    fn values_are_taken_in_the_order_in_which_they_were_put_back() {
        let pool = filled(3 * MAGAZINE_SIZE);
        pool.fill_magazines();
        assert_eq!(pool.newest_segment().full.len(), 2, "some stay single");
        let in_order: Vec<_> = (0..3).flat_map(|_| taken(&pool, MAGAZINE_SIZE)).collect();
        assert_eq!(in_order, (0..3 * MAGAZINE_SIZE).collect::<Vec<_>>());
        assert!(taken(&pool, MAGAZINE_SIZE).is_empty());
    }

    #[test]
    fn a_caller_that_wants_few_gets_a_magazine_only_without_single_values() {
        let pool = filled(4 * MAGAZINE_SIZE);
        pool.fill_magazines();
        assert_eq!(
            (pool.len(), pool.newest_segment().full.len()),
            (4 * MAGAZINE_SIZE, 3)
        );
        let mut all = BTreeSet::new();
        for _ in 0..MAGAZINE_SIZE {
            all.extend(taken(&pool, 1));
        }
        assert_eq!(all.len(), MAGAZINE_SIZE);
        all.extend(taken(&pool, 1));
        assert_eq!(all.len(), 2 * MAGAZINE_SIZE, "only magazines are left");
        pool.empty_magazines();
        assert_eq!(
            (pool.len(), pool.newest_segment().full.len()),
            (2 * MAGAZINE_SIZE, 0)
        );
        while let [one] = taken(&pool, 1)[..] {
            assert!(all.insert(one), "{one} came twice");
        }
        assert_eq!(all.len(), 4 * MAGAZINE_SIZE);
    }

    #[test]
    fn a_full_magazine_is_exchanged_for_an_empty_one() {
        let pool = filled(3 * MAGAZINE_SIZE);
        pool.fill_magazines();
        let mut magazine = Vec::with_capacity(MAGAZINE_SIZE);
        let mut all = Vec::new();
        while pool.exchange(&mut magazine) {
            assert_eq!(magazine.len(), MAGAZINE_SIZE);
            all.extend(magazine.drain(..).rev());
        }
        assert_eq!(all, (0..2 * MAGAZINE_SIZE).collect::<Vec<_>>());
        assert!(magazine.is_empty(), "it is kept if there is no full one");
        assert_eq!(pool.newest_segment().empty.len(), 2);
        put_all(&pool, all);
        pool.fill_magazines();
        assert_eq!(pool.newest_segment().magazines.load(Relaxed), 2);
    }

    #[test]
    fn magazines_are_reused() {
        let pool = filled(4 * MAGAZINE_SIZE);
        for _ in 0..if cfg!(miri) { 4 } else { 100 } {
            pool.fill_magazines();
            let all: Vec<_> = (0..4).flat_map(|_| taken(&pool, MAGAZINE_SIZE)).collect();
            put_all(&pool, all);
        }
        assert_eq!(pool.newest_segment().magazines.load(Relaxed), 3);
        assert_eq!(pool.newest_segment().empty.len(), 3);
    }

    #[test]
    fn a_pool_grows_by_segments() {
        let pool = Pool::new(1_000);
        let sizes = || -> Vec<_> { pool.all().map(|segment| segment.free.capacity()).collect() };
        assert_eq!(sizes(), [0; 0]);
        let made = [FIRST_SEGMENT, FIRST_SEGMENT + 1, 300, 1_000, 2_000];
        let segments: [&[usize]; 5] = [
            &[64],
            &[64, 128],
            &[64, 128, 512],
            &[64, 128, 512, 1_000],
            &[64, 128, 512, 1_000],
        ];
        for (made, segments) in made.into_iter().zip(segments) {
            pool.reserve(made);
            if pool.len() < 1_000 {
                put_all(&pool, pool.len()..made);
            }
            assert_eq!((sizes(), pool.len()), (segments.to_vec(), made.min(1_000)));
        }
        pool.fill_magazines();
        let mut all: Vec<_> = std::iter::from_fn(|| Some(taken(&pool, MAGAZINE_SIZE)))
            .take_while(|some| !some.is_empty())
            .flatten()
            .collect();
        assert!(
            all[..FIRST_SEGMENT].is_sorted(),
            "the oldest segment comes first"
        );
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_for_one_value_works() {
        let pool = filled(1);
        pool.fill_magazines();
        assert_eq!(taken(&pool, MAGAZINE_SIZE), [0]);
        assert!(taken(&pool, 1).is_empty());
        put_all(&pool, [0]);
        assert_eq!(pool.put(1), Err(1));
    }

    #[test]
    fn no_value_is_lost_or_duplicated_while_magazines_are_filled_and_emptied() {
        const COUNT: usize = 8 * MAGAZINE_SIZE;
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let pool = &filled(COUNT);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    pool.fill_magazines();
                    thread::yield_now();
                    pool.empty_magazines();
                }
            });
            let users = [MAGAZINE_SIZE, 3, 1].map(|wanted| {
                scope.spawn(move || (0..rounds).for_each(|_| put_all(pool, taken(pool, wanted))))
            });
            for user in users {
                user.join().expect("it does not panic");
            }
            done.store(true, Relaxed);
        });
        pool.empty_magazines();
        let mut all = taken(pool, COUNT);
        all.sort_unstable();
        assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
        assert_eq!(
            pool.newest_segment().empty.len(),
            pool.newest_segment().magazines.load(Relaxed)
        );
    }
}
