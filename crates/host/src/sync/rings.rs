//! The rings of all threads, which one thread drains.

use crate::sync::Lock;
use crate::sync::primitive::const_unless_loom;
use crate::sync::ring::{self, Consumer, Producer};

/// The consuming ends of the rings that threads push to, one for each thread. `I` is what the drain learns of a
/// ring's thread.
///
/// # Locks
///
/// `draining` is held for as long as values may be between a ring and the code that drains it. A drain and
/// [`with_waiting`](Self::with_waiting) take it, so that the latter never misses a value in between.
///
/// `list` is held for a few instructions at a time: [`add`](Self::add) takes it alone, so a thread that creates its
/// ring waits for no drain. A drain takes one ring out of the list, empties it with `list` released, and puts it back;
/// only a drain shortens the list, so the position of a ring that is out stays valid.
pub struct Rings<T, I = ()> {
    draining: Lock<()>,
    list: Lock<Vec<Option<Ring<T, I>>>>,
}

struct Ring<T, I> {
    values: Consumer<T>,
    info: I,
}

impl<T> Rings<T> {
    /// Moves the values that are in the rings now to `batch`; see [`drain_each`](Self::drain_each). Calls `note` with
    /// their number before any thread can see that they are not in the rings.
    pub fn drain(&self, batch: &mut Vec<T>, note: impl FnOnce(usize)) {
        let before = batch.len();
        let _draining = self.draining.lock();
        self.drain_locked(|(), value| batch.push(value));
        note(batch.len() - before);
    }
}

impl<T, I> Rings<T, I> {
    const_unless_loom! {
        /// Creates a list without rings.
        pub fn new() -> Self {
            Self {
                draining: Lock::new(()),
                list: Lock::new(Vec::new()),
            }
        }
    }

    /// Creates a ring for the calling thread and returns its producing end. Returns `None` if there is no memory for
    /// it.
    pub fn add(&self, capacity: usize, info: I) -> Option<Producer<T>> {
        let (producer, values) = ring::ring(capacity)?;
        let mut list = self.list.lock();
        list.try_reserve(1).ok()?;
        list.push(Some(Ring { values, info }));
        Some(producer)
    }

    /// Calls `take` with each value that is in the rings now, and removes the rings of threads that have ended.
    ///
    /// One call moves at most what fits in the rings, however fast threads push.
    pub fn drain_each(&self, take: impl FnMut(&I, T)) {
        let _draining = self.draining.lock();
        self.drain_locked(take);
    }

    /// Drains each ring. The caller holds `draining`.
    fn drain_locked(&self, mut take: impl FnMut(&I, T)) {
        let count = self.list.lock().len();
        for index in 0..count {
            let mut taken = TakenRing::new(self, index);
            let Some(ring) = &mut taken.ring else {
                continue;
            };
            // Load `is_closed` before the length: it then covers everything that the thread pushed before it ended.
            let has_ended = ring.values.is_closed();
            for _ in 0..ring.values.len() {
                if let Some(value) = ring.values.pop() {
                    take(&ring.info, value);
                }
            }
            if has_ended {
                taken.ring = None;
            }
        }
        self.list.lock().retain(Option::is_some);
    }

    /// Returns how many values wait in the rings.
    pub fn waiting(&self) -> usize {
        self.with_waiting(|waiting| waiting)
    }

    /// Calls `f` with the number of values that wait in the rings, while no drain takes any of them.
    pub fn with_waiting<R>(&self, f: impl FnOnce(usize) -> R) -> R {
        let _draining = self.draining.lock();
        let waiting = {
            let list = self.list.lock();
            list.iter().flatten().map(|ring| ring.values.len()).sum()
        };
        f(waiting)
    }
}

/// A ring that is out of the list. Its destructor puts it back, so that a panic while it is drained does not cut its
/// thread off.
struct TakenRing<'r, T, I> {
    rings: &'r Rings<T, I>,
    index: usize,
    ring: Option<Ring<T, I>>,
}

impl<'r, T, I> TakenRing<'r, T, I> {
    fn new(rings: &'r Rings<T, I>, index: usize) -> Self {
        let ring = rings.list.lock().get_mut(index).and_then(Option::take);
        Self { rings, index, ring }
    }
}

impl<T, I> Drop for TakenRing<'_, T, I> {
    fn drop(&mut self) {
        if let Some(slot) = self.rings.list.lock().get_mut(self.index) {
            *slot = self.ring.take();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
    use std::thread;

    use super::*;

    fn drained(rings: &Rings<u32>) -> Vec<u32> {
        let mut batch = Vec::new();
        rings.drain(&mut batch, |_| ());
        batch
    }

    #[test]
    fn each_value_is_drained_once_and_noted() {
        let rings = Rings::new();
        let mut one: Producer<u32> = rings.add(4, ()).unwrap();
        let mut two = rings.add(4, ()).unwrap();
        for number in 0..3 {
            one.push(number).unwrap();
            two.push(10 + number).unwrap();
        }
        assert_eq!(rings.waiting(), 6);
        let (mut batch, mut noted) = (vec![7], 0);
        rings.drain(&mut batch, |count| noted = count);
        assert_eq!((batch, noted), (vec![7, 0, 1, 2, 10, 11, 12], 6));
        assert_eq!(rings.waiting(), 0);
        assert!(drained(&rings).is_empty());
    }

    #[test]
    fn a_ring_is_removed_once_its_thread_has_ended_and_it_is_empty() {
        let rings = Rings::new();
        let mut ended: Producer<u32> = rings.add(4, ()).unwrap();
        let mut alive = rings.add(4, ()).unwrap();
        ended.push(1).unwrap();
        drop(ended);
        assert_eq!(drained(&rings), [1]);
        assert_eq!(rings.list.lock().len(), 1);
        alive.push(2).unwrap();
        assert_eq!(drained(&rings), [2]);
    }

    #[test]
    fn a_ring_can_be_added_while_the_rings_are_drained() {
        let rings = Rings::new();
        let mut first = rings.add(4, 1).unwrap();
        first.push("first").unwrap();
        let mut seen = Vec::new();
        let mut added = None;
        rings.drain_each(|info, value| {
            seen.push((*info, value));
            added = thread::scope(|scope| {
                scope
                    .spawn(|| rings.add(4, 2))
                    .join()
                    .expect("it does not wait")
            });
        });
        assert!(added.expect("there is memory").push("second").is_ok());
        rings.drain_each(|info, value| seen.push((*info, value)));
        assert_eq!(seen, [(1, "first"), (2, "second")]);
    }

    #[test]
    fn a_panic_in_a_drain_costs_the_value_at_hand_and_no_ring() {
        let rings = Rings::new();
        let mut producer: Producer<u32> = rings.add(4, ()).unwrap();
        for number in 0..3 {
            producer.push(number).unwrap();
        }
        let drain = || rings.drain_each(|(), _| panic_any("a test panics"));
        assert!(catch_unwind(AssertUnwindSafe(drain)).is_err());
        assert_eq!(rings.waiting(), 2);
        assert_eq!(drained(&rings), [1, 2]);
    }

    #[test]
    fn no_ring_is_added_where_there_is_no_memory() {
        assert!(Rings::<u8>::new().add(usize::MAX, ()).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A thread creates its ring, pushes and ends while another one drains: nothing is lost, and its ring goes.
    #[test]
    fn a_thread_that_comes_during_a_drain_loses_nothing() {
        loom::model(|| {
            let rings = Arc::new(Rings::new());
            let its_rings = Arc::clone(&rings);
            let pushing = thread::spawn(move || {
                let mut producer: Producer<u32> = its_rings.add(1, ()).unwrap();
                producer.push(1).unwrap();
            });
            let mut batch = Vec::new();
            rings.drain(&mut batch, |_| ());
            pushing.join().unwrap();
            rings.drain(&mut batch, |_| ());
            assert_eq!(batch, [1]);
            assert!(rings.list.lock().is_empty());
        });
    }

    /// A value is either waiting or noted at any time.
    #[test]
    fn a_value_is_never_neither_waiting_nor_noted() {
        loom::model(|| {
            let rings = Arc::new(Rings::new());
            let noted = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
            let mut producer: Producer<u32> = rings.add(1, ()).unwrap();
            producer.push(1).unwrap();
            let (its_rings, its_noted) = (Arc::clone(&rings), Arc::clone(&noted));
            let draining = thread::spawn(move || {
                let note = |count| its_noted.store(count, loom::sync::atomic::Ordering::Relaxed);
                its_rings.drain(&mut Vec::new(), note);
            });
            let seen = rings.with_waiting(|waiting| {
                waiting + noted.load(loom::sync::atomic::Ordering::Relaxed)
            });
            assert_eq!(seen, 1);
            draining.join().unwrap();
        });
    }
}
