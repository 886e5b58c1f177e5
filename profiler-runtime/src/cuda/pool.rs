//! What is free for the scopes to come, and how the threads that measure come by it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;

/// How many go from hand to hand at once, where there are enough of them.
pub(super) const BUNDLE: usize = 32;

/// Free ones that come back one by one, and are taken by the bundle.
///
/// One that another processor has put back costs the measured thread a look at that processor's memory, and a step
/// that both take part in. So the resolver, which puts most of them back, makes bundles of them while there are
/// plenty, and the measured thread pays that once for each bundle. A bundle is taken whole: what somebody had in hand
/// to take some of it would be hidden from all others.
#[derive(Debug)]
pub(super) struct Pool<T> {
    loose: ArrayQueue<T>,
    /// Full ones.
    bundles: ArrayQueue<Vec<T>>,
    /// What bundles were in, for those to come.
    empty: ArrayQueue<Vec<T>>,
    /// How many bundles there are, full, empty, or in somebody's hands.
    made: AtomicUsize,
}

impl<T> Pool<T> {
    /// One for so many.
    pub(super) fn new(capacity: usize) -> Self {
        let bundles = (capacity / BUNDLE).max(1);
        Self {
            loose: ArrayQueue::new(capacity),
            bundles: ArrayQueue::new(bundles),
            empty: ArrayQueue::new(bundles),
            made: AtomicUsize::new(0),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.loose.capacity()
    }

    /// About how many there are: who bundles may have some in hand.
    pub(super) fn len(&self) -> usize {
        self.loose.len() + BUNDLE * self.bundles.len()
    }

    /// Puts one back.
    ///
    /// # Errors
    ///
    /// The one, where the pool has as many already as it was made for.
    pub(super) fn put(&self, free: T) -> Result<(), T> {
        self.loose.push(free)
    }

    /// Takes so many, or fewer where there are not as many; a whole bundle where there is nothing else. True where
    /// that was any.
    pub(super) fn take(&self, wanted: usize, mut to: impl FnMut(T)) -> bool {
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

    /// Makes bundles of those that came back, as far as there are enough for some to stay. For one thread at a
    /// time.
    pub(super) fn bundle(&self) {
        while self.loose.len() >= 2 * BUNDLE
            && !self.bundles.is_full()
            && let Some(mut bundle) = self.empty.pop().or_else(|| self.make())
        {
            bundle.extend((0..BUNDLE).map_while(|_| self.loose.pop()));
            // Others may have taken of the loose ones meanwhile: less than a bundle is none.
            let is_whole = bundle.len() == BUNDLE;
            let kept = if is_whole {
                self.bundles.push(bundle)
            } else {
                Err(bundle)
            };
            if let Err(bundle) = kept {
                self.dissolve_one(bundle);
            }
        }
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

    /// Makes single ones of all bundles, for when there are few. For the thread that bundles.
    pub(super) fn dissolve(&self) {
        while let Some(bundle) = self.bundles.pop() {
            self.dissolve_one(bundle);
        }
    }

    fn dissolve_one(&self, mut bundle: Vec<T>) {
        for free in bundle.drain(..) {
            // They came from there.
            let _ = self.put(free);
        }
        let _ = self.empty.push(bundle);
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
        assert_eq!(pool.bundles.len(), 2, "some stay");
        let in_order: Vec<_> = (0..3).flat_map(|_| taken(&pool, BUNDLE)).collect();
        assert_eq!(in_order, (0..3 * BUNDLE).collect::<Vec<_>>());
        assert!(taken(&pool, BUNDLE).is_empty());
    }

    #[test]
    fn whoever_wants_few_gets_few_while_there_are_single_ones() {
        let pool = filled(4 * BUNDLE);
        pool.bundle();
        assert_eq!((pool.len(), pool.bundles.len()), (4 * BUNDLE, 3));
        let mut all = BTreeSet::new();
        for _ in 0..BUNDLE {
            all.extend(taken(&pool, 1));
        }
        assert_eq!(all.len(), BUNDLE);
        all.extend(taken(&pool, 1));
        assert_eq!(all.len(), 2 * BUNDLE, "there is nothing else");
        pool.dissolve();
        assert_eq!((pool.len(), pool.bundles.len()), (2 * BUNDLE, 0));
        while let [one] = taken(&pool, 1)[..] {
            assert!(all.insert(one), "{one} came twice");
        }
        assert_eq!(all.len(), 4 * BUNDLE);
    }

    #[test]
    fn what_bundles_are_in_is_used_again() {
        let pool = filled(4 * BUNDLE);
        for _ in 0..100 {
            pool.bundle();
            let all: Vec<_> = (0..4).flat_map(|_| taken(&pool, BUNDLE)).collect();
            put_all(&pool, all);
        }
        assert_eq!(pool.made.load(Relaxed), 3);
        assert_eq!(pool.empty.len(), 3);
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
        assert_eq!(pool.empty.len(), pool.made.load(Relaxed));
    }
}
