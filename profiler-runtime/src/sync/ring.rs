//! A bounded queue between two threads: one pushes, one pops, and neither waits.
//!
//! It is what the crate `rtrb` has, which ends the program where there is no memory for a queue.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Release},
};

/// Keeps what two threads write out of one cache line, and out of two that a processor fetches together.
#[repr(align(128))]
struct Apart<T>(T);

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// What both ends share.
///
/// Positions count up for ever (and wrap around); a position's slot is its remainder by the number of slots, a power of
/// two. Slots from `head` to `tail` hold values and belong to the consumer, all others belong to the producer.
struct Shared<T> {
    slots: Box<[Slot<T>]>,
    capacity: usize,
    /// The position of the next value to be popped: written by the consumer.
    head: Apart<AtomicUsize>,
    /// The position of the next value to be pushed: written by the producer.
    tail: Apart<AtomicUsize>,
    /// Whether the producer is gone.
    is_abandoned: AtomicBool,
}

// SAFETY: each slot belongs to one end at a time, and goes to the other one with a release of `head` or `tail` that the
// other one acquires. So values only move between threads, for which `Send` is enough.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn slot(&self, position: usize) -> *mut MaybeUninit<T> {
        // At least one slot, and a power of two of them: the remainder is below their number.
        let index = position & (self.slots.len() - 1);
        self.slots[index].get()
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let tail = *self.tail.0.get_mut();
        let mut head = *self.head.0.get_mut();
        while head != tail {
            // SAFETY: slots from `head` to `tail` hold values, and both ends are gone.
            unsafe { (*self.slot(head)).assume_init_drop() };
            head = head.wrapping_add(1);
        }
    }
}

/// The end that values are pushed into.
pub(crate) struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// `head` when it was last looked at.
    head: usize,
    /// `tail`, which nobody else writes.
    tail: usize,
}

/// The end that values are popped from.
pub(crate) struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// `head`, which nobody else writes.
    head: usize,
}

/// Makes a queue for `capacity` values, at least one. Returns none where there is no memory for them.
pub(crate) fn ring<T>(capacity: usize) -> Option<(Producer<T>, Consumer<T>)> {
    let capacity = capacity.max(1);
    let count = capacity.checked_next_power_of_two()?;
    let mut slots: Vec<Slot<T>> = Vec::new();
    slots.try_reserve_exact(count).ok()?;
    slots.resize_with(count, || UnsafeCell::new(MaybeUninit::uninit()));
    let shared = Arc::new(Shared {
        slots: slots.into_boxed_slice(),
        capacity,
        head: Apart(AtomicUsize::new(0)),
        tail: Apart(AtomicUsize::new(0)),
        is_abandoned: AtomicBool::new(false),
    });
    let consumer = Consumer {
        shared: Arc::clone(&shared),
        head: 0,
    };
    let producer = Producer {
        shared,
        head: 0,
        tail: 0,
    };
    Some((producer, consumer))
}

impl<T> Producer<T> {
    /// Pushes a value; gives it back where there is no room.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.shared;
        if self.tail.wrapping_sub(self.head) >= shared.capacity {
            // Acquire pairs with the release in `pop`: the consumer has moved the values out.
            self.head = shared.head.0.load(Acquire);
            if self.tail.wrapping_sub(self.head) >= shared.capacity {
                return Err(value);
            }
        }
        // SAFETY: fewer slots than there are hold values, so that the one at `tail` belongs to the producer, which is
        // borrowed mutably.
        unsafe { (*shared.slot(self.tail)).write(value) };
        self.tail = self.tail.wrapping_add(1);
        // Release pairs with the acquire in `slots` of the consumer: it sees the value.
        shared.tail.0.store(self.tail, Release);
        Ok(())
    }

    /// Whether more than half of the queue waits to be popped.
    #[inline]
    pub(crate) fn is_half_full(&mut self) -> bool {
        let half = self.shared.capacity / 2;
        let free = |this: &Self| this.shared.capacity - this.tail.wrapping_sub(this.head);
        // What is known without a look at the other end's cache line, first.
        if free(self) >= half {
            return false;
        }
        self.head = self.shared.head.0.load(Acquire);
        free(self) < half
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release pairs with the acquire in `is_abandoned`: whoever sees it sees all that was pushed.
        self.shared.is_abandoned.store(true, Release);
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest value.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.slots() == 0 {
            return None;
        }
        // SAFETY: the slot at `head` holds a value, which `slots` has acquired, and belongs to the consumer, which is
        // borrowed mutably. It is not read again: `head` goes past it.
        let value = unsafe { (*self.shared.slot(self.head)).assume_init_read() };
        self.head = self.head.wrapping_add(1);
        // Release pairs with the acquire in `push`: the slot may be written again.
        self.shared.head.0.store(self.head, Release);
        Some(value)
    }

    /// How many values wait to be popped.
    pub(crate) fn slots(&self) -> usize {
        self.shared.tail.0.load(Acquire).wrapping_sub(self.head)
    }

    /// Whether the producer is gone. What it pushed before can be popped after this said so.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.is_abandoned.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::Ordering::Relaxed;

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
                if push {
                    let room = model.len() < capacity.max(1);
                    let pushed = producer.push(value.clone());
                    prop_assert_eq!(pushed, if room { Ok(()) } else { Err(value.clone()) });
                    if room {
                        model.push_back(value);
                    }
                } else {
                    prop_assert_eq!(consumer.pop(), model.pop_front());
                }
                prop_assert_eq!(consumer.slots(), model.len());
                let free = capacity.max(1) - model.len();
                prop_assert_eq!(producer.is_half_full(), free < capacity.max(1) / 2);
            }
            prop_assert!(!consumer.is_abandoned());
            drop(producer);
            prop_assert!(consumer.is_abandoned());
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
            let is_abandoned = consumer.is_abandoned();
            while let Some(value) = consumer.pop() {
                assert_eq!(*value, next);
                next += 1;
            }
            if is_abandoned {
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

    #[test]
    fn one_that_there_is_no_memory_for_is_none() {
        assert!(ring::<[u8; 4096]>(usize::MAX / 8192).is_none());
        assert!(ring::<u8>(usize::MAX).is_none());
    }
}
