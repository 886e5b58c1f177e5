//! What is free for the scopes to come, and how the threads that measure come by it.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crossbeam_queue::ArrayQueue;

use crate::sync::RaceCell;

/// How many go from hand to hand at once, where there are enough of them.
pub(crate) const MAGAZINE_SIZE: usize = 32;

/// What the first room holds; each further one holds twice as much.
const FIRST_SEGMENT: usize = 2 * MAGAZINE_SIZE;
/// The last one holds more than a process can have.
const SEGMENTS: usize = 32;

/// Free ones that come back one by one, and are taken by the bundle.
///
/// One that another processor has put back costs the measured thread a look at that processor's memory, and a step
/// that both take part in. So the resolver, which puts most of them back, makes full of them while there are
/// plenty, and the measured thread pays that once for each bundle. A bundle is taken whole: what somebody had in hand
/// to take some of it would be hidden from all others.
///
/// A queue that never allocates is as large as it can become from the start. Programs may make many contexts that
/// need a few events each, so a pool begins with a small queue, and moves to one of twice the size when more have been
/// made than the one before has room for. What is free in the earlier ones is taken first; nothing is put there any
/// more.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    capacity: usize,
    segments: [RaceCell<Segment<T>>; SEGMENTS],
    /// The room that free ones are put into. It is made before its number stands here.
    newest: AtomicUsize,
}

#[derive(Debug)]
struct Segment<T> {
    free: ArrayQueue<T>,
    /// Full ones.
    full: ArrayQueue<Vec<T>>,
    /// What full were in, for those to come.
    empty: ArrayQueue<Vec<T>>,
    /// How many full there are, full, empty, or in somebody's hands.
    made: AtomicUsize,
}

impl<T> Pool<T> {
    /// One for at most so many.
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

    /// Makes room for so many. To be called before as many are made, so that each can be put back without
    /// allocating.
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

    /// Those that there are, in the order in which they were made.
    fn all(&self) -> impl Iterator<Item = &Segment<T>> {
        self.segments.iter().filter_map(RaceCell::get)
    }

    /// About how many there are: who full may have some in hand.
    pub(crate) fn len(&self) -> usize {
        self.all().map(Segment::len).sum()
    }

    /// Puts one back.
    ///
    /// # Errors
    ///
    /// The one, where the pool has as many already as it has room for.
    pub(crate) fn put(&self, mut free: T) -> Result<(), T> {
        loop {
            let newest = self.newest.load(Acquire);
            match self.segment(newest).free.push(free) {
                Ok(()) => return Ok(()),
                // Another thread may have made a larger room meanwhile.
                Err(back) if self.newest.load(Acquire) != newest => free = back,
                Err(back) => return Err(back),
            }
        }
    }

    /// Takes so many, or fewer where there are not as many; a whole bundle where there is nothing else. True where
    /// that was any.
    pub(crate) fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
        self.all().any(|segment| segment.take(wanted, &mut to))
    }

    /// Makes full of those that came back, as far as there are enough for some to stay. For one thread at a
    /// time.
    pub(crate) fn fill_magazines(&self) {
        let segment = self.newest_segment();
        while let Some(mut magazine) = segment.next_magazine() {
            magazine.extend((0..MAGAZINE_SIZE).map_while(|_| segment.free.pop()));
            // Others may have taken of the free ones meanwhile: less than a bundle is none.
            let is_whole = magazine.len() == MAGAZINE_SIZE;
            let kept = if is_whole {
                segment.full.push(magazine)
            } else {
                Err(magazine)
            };
            if let Err(magazine) = kept {
                self.empty_magazine(segment, magazine);
            }
        }
    }

    /// Makes single ones of all full, for when there are few. For the thread that full.
    pub(crate) fn empty_magazines(&self) {
        for segment in self.all() {
            while let Some(magazine) = segment.full.pop() {
                self.empty_magazine(segment, magazine);
            }
        }
    }

    fn empty_magazine(&self, segment: &Segment<T>, mut magazine: Vec<T>) {
        for free in magazine.drain(..) {
            // They came from there.
            let _ = self.put(free);
        }
        let _ = segment.empty.push(magazine);
    }
}

impl<T> Segment<T> {
    fn new(capacity: usize) -> Self {
        let full = (capacity / MAGAZINE_SIZE).max(1);
        Self {
            free: ArrayQueue::new(capacity.max(1)),
            full: ArrayQueue::new(full),
            empty: ArrayQueue::new(full),
            made: AtomicUsize::new(0),
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
        // Of a bundle that was dissolved meanwhile.
        self.free.pop().map(to).is_some()
    }

    fn take_magazine(&self, to: impl FnMut(T)) -> bool {
        let Some(mut magazine) = self.full.pop() else {
            return false;
        };
        magazine.drain(..).for_each(to);
        // There is room for all that were made.
        let _ = self.empty.push(magazine);
        true
    }

    /// What the next bundle can be in, where there are enough for one.
    fn next_magazine(&self) -> Option<Vec<T>> {
        if self.free.len() < 2 * MAGAZINE_SIZE || self.full.is_full() {
            return None;
        }
        self.empty.pop().or_else(|| self.make())
    }

    /// What a bundle can be in. As many as there is room for, so that none is ever freed by who took what was in it.
    fn make(&self) -> Option<Vec<T>> {
        let made = self.made.load(Relaxed);
        if made == self.full.capacity() {
            return None;
        }
        self.made.store(made + 1, Relaxed);
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
        for free in all {
            pool.put(free).expect("there is segment");
        }
    }

    fn taken(pool: &Pool<usize>, wanted: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        let any = pool.take(wanted, |free| taken.push(free));
        assert_eq!(any, !taken.is_empty());
        taken
    }

    #[test]
    fn they_come_in_the_order_in_which_they_went_back() {
        let pool = filled(3 * MAGAZINE_SIZE);
        pool.fill_magazines();
        assert_eq!(pool.newest_segment().full.len(), 2, "some stay");
        let in_order: Vec<_> = (0..3).flat_map(|_| taken(&pool, MAGAZINE_SIZE)).collect();
        assert_eq!(in_order, (0..3 * MAGAZINE_SIZE).collect::<Vec<_>>());
        assert!(taken(&pool, MAGAZINE_SIZE).is_empty());
    }

    #[test]
    fn whoever_wants_few_gets_few_while_there_are_single_ones() {
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
        assert_eq!(all.len(), 2 * MAGAZINE_SIZE, "there is nothing else");
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
    fn what_bundles_are_in_is_used_again() {
        let pool = filled(4 * MAGAZINE_SIZE);
        for _ in 0..if cfg!(miri) { 4 } else { 100 } {
            pool.fill_magazines();
            let all: Vec<_> = (0..4).flat_map(|_| taken(&pool, MAGAZINE_SIZE)).collect();
            put_all(&pool, all);
        }
        assert_eq!(pool.newest_segment().made.load(Relaxed), 3);
        assert_eq!(pool.newest_segment().empty.len(), 3);
    }

    #[test]
    fn a_pool_has_room_for_what_was_made() {
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
        assert!(all[..FIRST_SEGMENT].is_sorted(), "the earliest come first");
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_of_one_has_one() {
        let pool = filled(1);
        pool.fill_magazines();
        assert_eq!(taken(&pool, MAGAZINE_SIZE), [0]);
        assert!(taken(&pool, 1).is_empty());
        put_all(&pool, [0]);
        assert_eq!(pool.put(1), Err(1));
    }

    #[test]
    fn none_is_lost_or_handed_out_twice_whoever_bundles_meanwhile() {
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
            pool.newest_segment().made.load(Relaxed)
        );
    }
}
