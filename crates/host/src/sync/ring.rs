//! A bounded queue between two threads: one pushes, the other pops, and neither waits.
//!
//! The crate `rtrb` has the same queue, but aborts the program if there is no memory for it.
//!
//! # Protocol
//!
//! Positions count up and wrap around. The slot of a position is its remainder by the number of slots, a power of two.
//!
//! | slots | owner | ownership passes on |
//! |---|---|---|
//! | from `head` to before `tail` | the consumer | by a release store of `head`, which `push` acquires |
//! | all others | the producer | by a release store of `tail`, which `len` acquires |
//!
//! Each end is the only writer of its position, and reads its own copy of it. A release/acquire pair on the position
//! orders the access to the slot before the store with the access after the load, so at most one end touches a slot at
//! a time. A stale `head` makes the queue look fuller than it is, and a stale `tail` makes it look emptier: both are
//! safe. `is_closed` is stored with a release after the last push, so a consumer that reads `true` and then `tail` sees
//! every value.

use std::mem::MaybeUninit;

use crate::sync::padded::CachePadded;
use crate::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::primitive::{Arc, AtomicBool, AtomicUsize, UnsafeCell};

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The state that both ends share.
struct Shared<T> {
    /// Their number is a power of two.
    slots: Box<[Slot<T>]>,
    capacity: usize,
    /// The position of the next value to be popped. Written by the consumer.
    head: CachePadded<AtomicUsize>,
    /// The position of the next value to be pushed. Written by the producer.
    tail: CachePadded<AtomicUsize>,
    /// `true` once the producer has been dropped.
    is_closed: AtomicBool,
}

// SAFETY: a slot has one owner at a time, and passes from one end to the other by a release store of `head` or `tail`
// that the other end acquires. Values only move between threads, for which `T: Send` suffices.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above; it owns the values that it drops.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: usize) -> &Slot<T> {
        debug_assert!(self.slots.len().is_power_of_two());
        // SAFETY: the number of slots is a power of two, as `ring` makes it, so it is at least one, and the index is below it.
        unsafe { self.slots.get_unchecked(position & (self.slots.len() - 1)) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Relaxed: dropping the last `Arc` happens after everything that both ends did.
        let tail = self.tail.0.load(Relaxed);
        let mut head = self.head.0.load(Relaxed);
        while head != tail {
            // SAFETY: slots from `head` to `tail` hold values, and both ends are gone.
            self.slot(head)
                .with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            head = head.wrapping_add(1);
        }
    }
}

/// The end that values are pushed to.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// The value of `head` when it was last loaded: a lower bound of the current one.
    head: usize,
    /// A copy of `tail`, which only the producer writes.
    tail: usize,
    /// Half of the capacity.
    half: usize,
}

/// The end that values are popped from.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// A copy of `head`, which only the consumer writes.
    head: usize,
}

/// Creates a queue for `capacity` values, at least one. Returns `None` if there is no memory for them.
pub fn ring<T>(capacity: usize) -> Option<(Producer<T>, Consumer<T>)> {
    let capacity = capacity.max(1);
    let count = capacity.checked_next_power_of_two()?;
    let mut slots: Vec<Slot<T>> = Vec::new();
    slots.try_reserve_exact(count).ok()?;
    // Nothing is written: unoptimised code would copy each slot, and thereby touch every page of a queue that may never hold
    // more than a few values.
    // SAFETY: there is room for `count` slots, and a slot is valid uninitialised: a transparent cell around `MaybeUninit`.
    #[cfg(not(loom))]
    unsafe {
        slots.set_len(count);
    }
    // Loom's cells have a state of their own.
    #[cfg(loom)]
    slots.resize_with(count, || UnsafeCell::new(MaybeUninit::uninit()));
    let shared = Arc::new(Shared {
        slots: slots.into_boxed_slice(),
        capacity,
        head: CachePadded(AtomicUsize::new(0)),
        tail: CachePadded(AtomicUsize::new(0)),
        is_closed: AtomicBool::new(false),
    });
    let consumer = Consumer {
        shared: Arc::clone(&shared),
        head: 0,
    };
    let producer = Producer {
        shared,
        head: 0,
        tail: 0,
        half: capacity / 2,
    };
    Some((producer, consumer))
}

impl<T> Producer<T> {
    /// Pushes a value.
    ///
    /// # Errors
    ///
    /// Returns the value if the queue is full.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.shared;
        if self.tail.wrapping_sub(self.head) >= shared.capacity {
            // Acquire pairs with the release in `pop`: the consumer has moved the values out of the slots.
            self.head = shared.head.0.load(Acquire);
            if self.tail.wrapping_sub(self.head) >= shared.capacity {
                return Err(value);
            }
        }
        // SAFETY: fewer than `capacity` slots hold values.
        unsafe { self.write(|| value) };
        Ok(())
    }

    /// Pushes what `make` returns if less than half of the queue is waiting to be popped. Else returns `false`.
    ///
    /// One comparison finds that there is room, and that the consumer need not be woken.
    #[inline(always)]
    pub fn push_early(&mut self, make: impl FnOnce() -> T) -> bool {
        self.push_early_from((), |()| make()).is_ok()
    }

    /// Pushes `make(from)` if less than half of the queue is waiting to be popped.
    ///
    /// # Errors
    ///
    /// Returns `from` if half of the queue is waiting.
    #[inline(always)]
    pub fn push_early_from<F>(&mut self, from: F, make: impl FnOnce(F) -> T) -> Result<(), F> {
        if self.tail.wrapping_sub(self.head) >= self.half && !self.has_half_free() {
            return Err(from);
        }
        // SAFETY: fewer than half of `capacity` slots hold values.
        unsafe { self.write(|| make(from)) };
        Ok(())
    }

    /// Loads how far the consumer is. Returns `true` if less than half of the queue is waiting.
    #[cold]
    #[inline(never)]
    fn has_half_free(&mut self) -> bool {
        // Acquire pairs with the release in `pop`: the consumer has moved the values out of the slots.
        self.head = self.shared.head.0.load(Acquire);
        self.tail.wrapping_sub(self.head) < self.half
    }

    /// Writes what `make` returns to the next slot, and passes the slot on.
    ///
    /// # Safety
    ///
    /// Fewer than `capacity` slots hold values.
    #[inline(always)]
    unsafe fn write(&mut self, make: impl FnOnce() -> T) {
        let shared = &*self.shared;
        let slot = shared.slot(self.tail);
        // SAFETY: the slot at `tail` is free, as the caller promises, so it belongs to the producer, which is borrowed
        // mutably.
        slot.with_mut(|slot| unsafe { (*slot).write(make()) });
        self.tail = self.tail.wrapping_add(1);
        // Release pairs with the acquire in `Consumer::len`, which then sees the value.
        shared.tail.0.store(self.tail, Release);
    }

    /// Returns `true` if more than half of the queue is waiting to be popped.
    #[inline]
    pub fn is_half_full(&mut self) -> bool {
        let free = |this: &Self| this.shared.capacity - this.tail.wrapping_sub(this.head);
        // The last known `head` decides most calls, without a load of the cache line that the consumer writes.
        if free(self) >= self.half {
            return false;
        }
        self.head = self.shared.head.0.load(Acquire);
        free(self) < self.half
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release pairs with the acquire in `is_closed`: a consumer that sees it sees every push before it.
        self.shared.is_closed.store(true, Release);
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest value.
    pub fn pop(&mut self) -> Option<T> {
        if self.len() == 0 {
            return None;
        }
        // SAFETY: the slot at `head` holds a value, whose write `len` has acquired. It belongs to the consumer, which
        // is borrowed mutably, and is not read again: `head` moves past it.
        let value = self
            .shared
            .slot(self.head)
            .with(|slot| unsafe { (*slot).assume_init_read() });
        self.head = self.head.wrapping_add(1);
        // Release pairs with the acquire in `push`, which may then overwrite the slot.
        self.shared.head.0.store(self.head, Release);
        Some(value)
    }

    /// Returns how many values are waiting to be popped.
    pub fn len(&self) -> usize {
        self.shared.tail.0.load(Acquire).wrapping_sub(self.head)
    }

    /// Returns `true` once the producer has been dropped. Every value that it pushed is visible after that.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;
    #[cfg(all(target_os = "linux", not(miri)))]
    use std::ptr;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        #[test]
        fn it_is_a_bounded_queue(
            capacity in 0_usize..9,
            first in prop::sample::select(vec![0, usize::MAX - 3]),
            pushes in prop::collection::vec(any::<bool>(), 0..60),
        ) {
            let (mut producer, mut consumer) = ring(capacity).unwrap();
            // Positions wrap around.
            (producer.head, producer.tail, consumer.head) = (first, first, first);
            producer.shared.head.0.store(first, Relaxed);
            producer.shared.tail.0.store(first, Relaxed);
            let mut model = VecDeque::new();
            for (number, push) in pushes.into_iter().enumerate() {
                // With a destructor, so that miri sees a value that is lost or dropped twice.
                let value = number.to_string();
                if push && number % 3 == 0 {
                    let room = model.len() < capacity.max(1) / 2;
                    prop_assert_eq!(producer.push_early(|| value.clone()), room);
                    if room {
                        model.push_back(value);
                    }
                } else if push {
                    let room = model.len() < capacity.max(1);
                    let pushed = producer.push(value.clone());
                    prop_assert_eq!(pushed, if room { Ok(()) } else { Err(value.clone()) });
                    if room {
                        model.push_back(value);
                    }
                } else {
                    prop_assert_eq!(consumer.pop(), model.pop_front());
                }
                prop_assert_eq!(consumer.len(), model.len());
                let free = capacity.max(1) - model.len();
                prop_assert_eq!(producer.is_half_full(), free < capacity.max(1) / 2);
            }
            prop_assert!(!consumer.is_closed());
            drop(producer);
            prop_assert!(consumer.is_closed());
            prop_assert_eq!(consumer.pop(), model.pop_front());
        }
    }

    #[test]
    fn two_threads_hand_over_each_value_once_and_in_order() {
        let count = if cfg!(miri) { 200 } else { 100_000 };
        let (mut producer, mut consumer) = ring(7).unwrap();
        let pushing = std::thread::spawn(move || {
            for number in 0..count {
                let mut value = Box::new(number);
                while let Err(back) = producer.push(value) {
                    value = back;
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0;
        loop {
            let is_closed = consumer.is_closed();
            while let Some(value) = consumer.pop() {
                assert_eq!(*value, next);
                next += 1;
            }
            if is_closed {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(next, count);
        pushing.join().unwrap();
    }

    #[test]
    fn what_is_left_is_dropped_once() {
        let value = Arc::new(());
        let (mut producer, mut consumer) = ring(4).unwrap();
        for _ in 0..3 {
            producer.push(Arc::clone(&value)).unwrap();
        }
        drop(consumer.pop());
        assert_eq!(Arc::strong_count(&value), 3);
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    /// As a thread has it from the first record on.
    #[cfg(target_os = "linux")]
    #[cfg(not(miri))]
    #[test]
    fn the_memory_of_an_empty_queue_is_not_touched() {
        let (queue, _consumer) = ring::<[u8; 128]>(1 << 20).unwrap();
        let slots = &queue.shared.slots;
        // SAFETY: it only asks.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
        // Other values may share the first page and the last one.
        let begin = slots.as_ptr().addr().next_multiple_of(page);
        let end = slots.as_ptr_range().end.addr() / page * page;
        let mut pages = vec![0_u8; (end - begin) / page];
        // SAFETY: the pages belong to the queue, which lives, and there is a byte for each of them.
        let asked = unsafe {
            libc::mincore(
                ptr::without_provenance_mut(begin),
                end - begin,
                pages.as_mut_ptr(),
            )
        };
        assert_eq!(asked, 0);
        // Beside memory that is touched, the system may give huge pages.
        let resident = pages.iter().filter(|page| **page & 1 != 0).count();
        let all = pages.len();
        assert!(resident < all / 4, "{resident} of {all} pages");
    }

    #[test]
    fn one_that_there_is_no_memory_for_is_none() {
        assert!(ring::<[u8; 4096]>(usize::MAX / 8192).is_none());
        assert!(ring::<u8>(usize::MAX).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::thread;

    use super::*;

    /// Slots are used again while they are read, and boxes show a value that is read twice or too early.
    #[test]
    fn values_arrive_once_and_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(1).unwrap();
            let pushing = thread::spawn(move || {
                (1..=3)
                    .filter(|number| producer.push(Box::new(*number)).is_ok())
                    .collect::<Vec<_>>()
            });
            let mut popped: Vec<i32> = (0..2)
                .filter_map(|_| consumer.pop().map(|value| *value))
                .collect();
            let pushed = pushing.join().unwrap();
            popped.extend(std::iter::from_fn(|| consumer.pop().map(|value| *value)));
            assert_eq!(popped, pushed);
        });
    }

    /// The producer may learn from another question than that of `push` that a slot is free.
    #[test]
    fn a_slot_that_was_seen_to_be_free_has_been_read() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2).unwrap();
            producer.push(Box::new(1)).unwrap();
            producer.push(Box::new(2)).unwrap();
            let popping = thread::spawn(move || consumer.pop().map(|value| *value));
            if !producer.is_half_full() {
                producer.push(Box::new(3)).unwrap();
            }
            assert_eq!(popping.join().unwrap(), Some(1));
        });
    }

    /// As above, for `push_early`.
    #[test]
    fn a_slot_of_a_half_free_queue_has_been_read() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2).unwrap();
            assert!(producer.push_early(|| Box::new(1)));
            producer.push(Box::new(2)).unwrap();
            let popping = thread::spawn(move || {
                [consumer.pop(), consumer.pop()].map(|value| value.map(|value| *value))
            });
            let is_pushed = producer.push_early(|| Box::new(3));
            let popped = popping.join().unwrap();
            assert_eq!(popped, [Some(1), Some(2)]);
            assert!(is_pushed || producer.push_early(|| Box::new(3)));
        });
    }

    #[test]
    fn all_values_are_visible_once_the_producer_is_gone() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2).unwrap();
            let pushing = thread::spawn(move || {
                producer.push(Box::new(1)).unwrap();
                producer.push(Box::new(2)).unwrap();
            });
            if consumer.is_closed() {
                assert_eq!(consumer.len(), 2);
                assert_eq!(consumer.pop().map(|value| *value), Some(1));
            }
            pushing.join().unwrap();
        });
    }
}
