//! What is free for the scopes to come, and how the threads that measure come by it.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use crossbeam_queue::ArrayQueue;

use crate::sync::RaceCell;

/// How many go from hand to hand at once, where there are enough of them.
pub(super) const BUNDLE: usize = 32;

/// What the first room holds; each further one holds twice as much.
const FIRST_ROOM: usize = 2 * BUNDLE;
/// The last one holds more than a process can have.
const ROOMS: usize = 32;

/// Free ones that come back one by one, and are taken by the bundle.
///
/// One that another processor has put back costs the measured thread a look at that processor's memory, and a step
/// that both take part in. So the resolver, which puts most of them back, makes bundles of them while there are
/// plenty, and the measured thread pays that once for each bundle. A bundle is taken whole: what somebody had in hand
/// to take some of it would be hidden from all others.
///
/// A queue that never allocates is as large as it can become from the start. Programs may make many contexts that
/// need a few events each, so a pool begins with a small queue, and moves to one of twice the size when more have been
/// made than the one before has room for. What is free in the earlier ones is taken first; nothing is put there any
/// more.
#[derive(Debug)]
pub(super) struct Pool<T> {
    capacity: usize,
    rooms: [RaceCell<Room<T>>; ROOMS],
    /// The room that free ones are put into. It is made before its number stands here.
    newest: AtomicUsize,
}

#[derive(Debug)]
struct Room<T> {
    loose: ArrayQueue<T>,
    /// Full ones.
    bundles: ArrayQueue<Vec<T>>,
    /// What bundles were in, for those to come.
    empty: ArrayQueue<Vec<T>>,
    /// How many bundles there are, full, empty, or in somebody's hands.
    made: AtomicUsize,
}

impl<T> Pool<T> {
    /// One for at most so many.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            rooms: [const { RaceCell::new() }; ROOMS],
            newest: AtomicUsize::new(0),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for so many. To be called before as many are made, so that each can be put back without
    /// allocating.
    pub(super) fn make_room(&self, count: usize) {
        let number = (0..ROOMS).find(|number| self.size(*number) >= count.min(self.capacity));
        let number = number.unwrap_or(ROOMS - 1);
        if number > self.newest.load(Relaxed) {
            self.room(number);
            self.newest.fetch_max(number, Release);
        }
    }

    fn size(&self, number: usize) -> usize {
        let doubled = FIRST_ROOM.saturating_mul(1 << number);
        doubled.min(self.capacity)
    }

    fn room(&self, number: usize) -> &Room<T> {
        self.rooms[number].get_or_init(|| Room::new(self.size(number)))
    }

    fn newest_room(&self) -> &Room<T> {
        self.room(self.newest.load(Acquire))
    }

    /// Those that there are, in the order in which they were made.
    fn all(&self) -> impl Iterator<Item = &Room<T>> {
        self.rooms.iter().filter_map(RaceCell::get)
    }

    /// About how many there are: who bundles may have some in hand.
    pub(super) fn len(&self) -> usize {
        self.all().map(Room::len).sum()
    }

    /// Puts one back.
    ///
    /// # Errors
    ///
    /// The one, where the pool has as many already as it has room for.
    pub(super) fn put(&self, mut free: T) -> Result<(), T> {
        loop {
            let newest = self.newest.load(Acquire);
            match self.room(newest).loose.push(free) {
                Ok(()) => return Ok(()),
                // Another thread may have made a larger room meanwhile.
                Err(back) if self.newest.load(Acquire) != newest => free = back,
                Err(back) => return Err(back),
            }
        }
    }

    /// Takes so many, or fewer where there are not as many; a whole bundle where there is nothing else. True where
    /// that was any.
    pub(super) fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
        self.all().any(|room| room.take(wanted, &mut to))
    }

    /// Makes bundles of those that came back, as far as there are enough for some to stay. For one thread at a
    /// time.
    pub(super) fn bundle(&self) {
        let room = self.newest_room();
        while let Some(mut bundle) = room.next_bundle() {
            bundle.extend((0..BUNDLE).map_while(|_| room.loose.pop()));
            // Others may have taken of the loose ones meanwhile: less than a bundle is none.
            let is_whole = bundle.len() == BUNDLE;
            let kept = if is_whole {
                room.bundles.push(bundle)
            } else {
                Err(bundle)
            };
            if let Err(bundle) = kept {
                self.dissolve_one(room, bundle);
            }
        }
    }

    /// Makes single ones of all bundles, for when there are few. For the thread that bundles.
    pub(super) fn dissolve(&self) {
        for room in self.all() {
            while let Some(bundle) = room.bundles.pop() {
                self.dissolve_one(room, bundle);
            }
        }
    }

    fn dissolve_one(&self, room: &Room<T>, mut bundle: Vec<T>) {
        for free in bundle.drain(..) {
            // They came from there.
            let _ = self.put(free);
        }
        let _ = room.empty.push(bundle);
    }
}

impl<T> Room<T> {
    fn new(capacity: usize) -> Self {
        let bundles = (capacity / BUNDLE).max(1);
        Self {
            loose: ArrayQueue::new(capacity.max(1)),
            bundles: ArrayQueue::new(bundles),
            empty: ArrayQueue::new(bundles),
            made: AtomicUsize::new(0),
        }
    }

    fn len(&self) -> usize {
        self.loose.len() + BUNDLE * self.bundles.len()
    }

    fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
        if wanted >= BUNDLE && self.take_bundle(&mut to) {
            return true;
        }
        let taken = (0..wanted).map_while(|_| self.loose.pop()).map(&mut to);
        if taken.count() > 0 || self.take_bundle(&mut to) {
            return true;
        }
        // Of a bundle that was dissolved meanwhile.
        self.loose.pop().map(to).is_some()
    }

    fn take_bundle(&self, to: impl FnMut(T)) -> bool {
        let Some(mut bundle) = self.bundles.pop() else {
            return false;
        };
        bundle.drain(..).for_each(to);
        // There is room for all that were made.
        let _ = self.empty.push(bundle);
        true
    }

    /// What the next bundle can be in, where there are enough for one.
    fn next_bundle(&self) -> Option<Vec<T>> {
        if self.loose.len() < 2 * BUNDLE || self.bundles.is_full() {
            return None;
        }
        self.empty.pop().or_else(|| self.make())
    }

    /// What a bundle can be in. As many as there is room for, so that none is ever freed by who took what was in it.
    fn make(&self) -> Option<Vec<T>> {
        let made = self.made.load(Relaxed);
        if made == self.bundles.capacity() {
            return None;
        }
        self.made.store(made + 1, Relaxed);
        Some(Vec::with_capacity(BUNDLE))
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
        pool.make_room(count);
        put_all(&pool, 0..count);
        pool
    }

    fn put_all(pool: &Pool<usize>, all: impl IntoIterator<Item = usize>) {
        for free in all {
            pool.put(free).expect("there is room");
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
        let pool = filled(3 * BUNDLE);
        pool.bundle();
        assert_eq!(pool.newest_room().bundles.len(), 2, "some stay");
        let in_order: Vec<_> = (0..3).flat_map(|_| taken(&pool, BUNDLE)).collect();
        assert_eq!(in_order, (0..3 * BUNDLE).collect::<Vec<_>>());
        assert!(taken(&pool, BUNDLE).is_empty());
    }

    #[test]
    fn whoever_wants_few_gets_few_while_there_are_single_ones() {
        let pool = filled(4 * BUNDLE);
        pool.bundle();
        assert_eq!(
            (pool.len(), pool.newest_room().bundles.len()),
            (4 * BUNDLE, 3)
        );
        let mut all = BTreeSet::new();
        for _ in 0..BUNDLE {
            all.extend(taken(&pool, 1));
        }
        assert_eq!(all.len(), BUNDLE);
        all.extend(taken(&pool, 1));
        assert_eq!(all.len(), 2 * BUNDLE, "there is nothing else");
        pool.dissolve();
        assert_eq!(
            (pool.len(), pool.newest_room().bundles.len()),
            (2 * BUNDLE, 0)
        );
        while let [one] = taken(&pool, 1)[..] {
            assert!(all.insert(one), "{one} came twice");
        }
        assert_eq!(all.len(), 4 * BUNDLE);
    }

    #[test]
    fn what_bundles_are_in_is_used_again() {
        let pool = filled(4 * BUNDLE);
        for _ in 0..if cfg!(miri) { 4 } else { 100 } {
            pool.bundle();
            let all: Vec<_> = (0..4).flat_map(|_| taken(&pool, BUNDLE)).collect();
            put_all(&pool, all);
        }
        assert_eq!(pool.newest_room().made.load(Relaxed), 3);
        assert_eq!(pool.newest_room().empty.len(), 3);
    }

    #[test]
    fn a_pool_has_room_for_what_was_made() {
        let pool = Pool::new(1_000);
        let sizes = || -> Vec<_> { pool.all().map(|room| room.loose.capacity()).collect() };
        assert_eq!(sizes(), [0; 0]);
        let made = [FIRST_ROOM, FIRST_ROOM + 1, 300, 1_000, 2_000];
        let rooms: [&[usize]; 5] = [
            &[64],
            &[64, 128],
            &[64, 128, 512],
            &[64, 128, 512, 1_000],
            &[64, 128, 512, 1_000],
        ];
        for (made, rooms) in made.into_iter().zip(rooms) {
            pool.make_room(made);
            if pool.len() < 1_000 {
                put_all(&pool, pool.len()..made);
            }
            assert_eq!((sizes(), pool.len()), (rooms.to_vec(), made.min(1_000)));
        }
        pool.bundle();
        let mut all: Vec<_> = std::iter::from_fn(|| Some(taken(&pool, BUNDLE)))
            .take_while(|some| !some.is_empty())
            .flatten()
            .collect();
        assert!(all[..FIRST_ROOM].is_sorted(), "the earliest come first");
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_pool_of_one_has_one() {
        let pool = filled(1);
        pool.bundle();
        assert_eq!(taken(&pool, BUNDLE), [0]);
        assert!(taken(&pool, 1).is_empty());
        put_all(&pool, [0]);
        assert_eq!(pool.put(1), Err(1));
    }

    #[test]
    fn none_is_lost_or_handed_out_twice_whoever_bundles_meanwhile() {
        const COUNT: usize = 8 * BUNDLE;
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let pool = &filled(COUNT);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    pool.bundle();
                    thread::yield_now();
                    pool.dissolve();
                }
            });
            let users = [BUNDLE, 3, 1].map(|wanted| {
                scope.spawn(move || (0..rounds).for_each(|_| put_all(pool, taken(pool, wanted))))
            });
            for user in users {
                user.join().expect("it does not panic");
            }
            done.store(true, Relaxed);
        });
        pool.dissolve();
        let mut all = taken(pool, COUNT);
        all.sort_unstable();
        assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
        assert_eq!(
            pool.newest_room().empty.len(),
            pool.newest_room().made.load(Relaxed)
        );
    }
}
