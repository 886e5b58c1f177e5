//! What is free for the scopes to come, and how the threads that measure come by it.

use crossbeam_queue::ArrayQueue;

/// How many a thread takes at once.
pub(super) const BUNDLE: usize = 32;

/// Free ones that come back one by one, and are taken by the bundle.
///
/// One that another processor has put back costs the measured thread a look at that processor's memory, and a step
/// that both take part in. So the resolver, which puts most of them back, makes bundles of them, and the measured
/// thread pays that once for each bundle.
#[derive(Debug)]
pub(super) struct Pool<T> {
    loose: ArrayQueue<T>,
    /// Full ones.
    bundles: ArrayQueue<Vec<T>>,
    /// What bundles were in, for those to come.
    empty: ArrayQueue<Vec<T>>,
}

impl<T> Pool<T> {
    /// One for so many.
    pub(super) fn new(capacity: usize) -> Self {
        let bundles = (capacity / BUNDLE).max(1);
        Self {
            loose: ArrayQueue::new(capacity),
            bundles: ArrayQueue::new(bundles),
            empty: ArrayQueue::new(bundles),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.loose.capacity()
    }

    /// How many there are, but for those that are being bundled.
    pub(super) fn len(&self) -> usize {
        self.loose.len() + BUNDLE * self.bundles.len()
    }

    /// Puts one back. There is room for as many as the pool was made for; what is beyond them is dropped.
    pub(super) fn put(&self, free: T) {
        let _ = self.loose.push(free);
    }

    /// Takes one.
    pub(super) fn pop(&self) -> Option<T> {
        self.loose.pop().or_else(|| {
            let mut one = None;
            self.open_bundle(1, |free| one = Some(free));
            one
        })
    }

    /// Takes as many as are wanted, or fewer: none only where there are none.
    pub(super) fn take(&self, wanted: usize, mut to: impl FnMut(T)) {
        if wanted < BUNDLE || !self.open_bundle(wanted, &mut to) {
            (0..wanted).map_while(|_| self.pop()).for_each(to);
        }
    }

    /// Hands on so many of a bundle, and keeps the rest; false where there is no bundle.
    fn open_bundle(&self, wanted: usize, to: impl FnMut(T)) -> bool {
        let Some(mut bundle) = self.bundles.pop() else {
            return false;
        };
        let rest = bundle.len().min(wanted);
        bundle.drain(..rest).for_each(to);
        bundle.drain(..).for_each(|free| self.put(free));
        let _ = self.empty.push(bundle);
        true
    }

    /// Makes bundles of those that came back, as far as there are enough for some to stay.
    pub(super) fn bundle(&self) {
        while self.loose.len() >= 2 * BUNDLE && !self.bundles.is_full() {
            let mut bundle = self
                .empty
                .pop()
                .unwrap_or_else(|| Vec::with_capacity(BUNDLE));
            bundle.extend((0..BUNDLE).map_while(|_| self.loose.pop()));
            self.keep(bundle);
        }
    }

    fn keep(&self, mut bundle: Vec<T>) {
        // Somebody took of the loose ones meanwhile, or bundled others.
        if bundle.len() < BUNDLE || self.bundles.is_full() {
            bundle.drain(..).for_each(|free| self.put(free));
        } else if let Err(bundle) = self.bundles.push(bundle) {
            for free in bundle {
                self.put(free);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    use super::{BUNDLE, Pool};

    fn filled(count: usize) -> Pool<usize> {
        let pool = Pool::new(count);
        (0..count).for_each(|free| pool.put(free));
        pool
    }

    fn taken(pool: &Pool<usize>, wanted: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        pool.take(wanted, |free| taken.push(free));
        taken
    }

    #[test]
    fn they_come_in_the_order_in_which_they_went_back() {
        let pool = filled(3 * BUNDLE);
        pool.bundle();
        let in_order: Vec<_> = (0..3).flat_map(|_| taken(&pool, BUNDLE)).collect();
        assert_eq!(in_order, (0..3 * BUNDLE).collect::<Vec<_>>());
        assert!(taken(&pool, BUNDLE).is_empty());
    }

    #[test]
    fn whoever_wants_few_gets_few_and_loses_none() {
        let pool = filled(4 * BUNDLE);
        pool.bundle();
        assert_eq!(pool.len(), 4 * BUNDLE);
        let mut all = BTreeSet::new();
        while let Some(one) = taken(&pool, 1).pop() {
            assert!(all.insert(one), "{one} came twice");
            assert_eq!(pool.len(), 4 * BUNDLE - all.len());
        }
        assert_eq!(all.len(), 4 * BUNDLE);
    }

    #[test]
    fn a_pool_of_one_has_one() {
        let pool = filled(1);
        pool.bundle();
        assert_eq!(taken(&pool, BUNDLE), [0]);
        assert_eq!(pool.pop(), None);
    }

    #[test]
    fn none_is_lost_or_handed_out_twice_whoever_bundles_meanwhile() {
        const COUNT: usize = 8 * BUNDLE;
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let pool = filled(COUNT);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    pool.bundle();
                    thread::yield_now();
                }
            });
            let users: Vec<_> = [BUNDLE, 3, 1]
                .map(|wanted| {
                    let pool = &pool;
                    scope.spawn(move || {
                        for _ in 0..rounds {
                            for free in taken(pool, wanted) {
                                pool.put(free);
                            }
                        }
                    })
                })
                .into_iter()
                .collect();
            for user in users {
                user.join().expect("it does not panic");
            }
            done.store(true, Relaxed);
        });
        let mut all: Vec<_> = std::iter::from_fn(|| pool.pop()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
    }
}
