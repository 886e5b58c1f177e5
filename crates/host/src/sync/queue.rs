//! A bounded queue between any number of threads on both sides, without a lock.
//!
//! The algorithm is Dmitry Vyukov's bounded queue, with the laps of the crate `crossbeam-queue`, whose queue aborts the
//! program if there is no memory for it.
//!
//! # Protocol
//!
//! A position is an index in its low bits and a lap in the bits above; `head` and `tail` count positions up. Each slot
//! has a stamp, which says who may use it:
//!
//! | stamp of the slot at position `p` | the slot | passes on |
//! |---|---|---|
//! | `p` | is free for the thread that moves `tail` from `p` | a release store of `p + 1`, which `pop` acquires |
//! | `p + 1` | has a value for the thread that moves `head` from `p` | a release store of `p + lap`, which `push` acquires |
//!
//! Only one thread moves `tail` or `head` from a position, since that is a compare-exchange, so a slot has one owner at a
//! time. The stamps alone order the accesses to a slot.
//!
//! A queue is full if its slot at `tail` still has the value of the lap before and `head` is a lap behind; it is empty if
//! its slot at `head` has no value and `tail` is there too. A thread that has moved a position and has not stored the stamp
//! yet makes the slot look otherwise: others wait for it, the few instructions that this takes. The fences order the load
//! of the stamp before that of the other position, with the sequentially consistent exchanges: a thread that finds the queue
//! full or empty was right at some moment of its call.

use std::fmt;
use std::mem::MaybeUninit;

use crate::sync::padded::CachePadded;
use crate::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::primitive::atomic::fence;
use crate::sync::primitive::{AtomicUsize, UnsafeCell, spin_loop, thread};

/// How often a thread looks again before it lets others run.
const SPINS: u32 = 64;

struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A bounded queue that any thread pushes to and pops from.
pub struct Queue<T> {
    /// The position of the next value to be popped.
    head: CachePadded<AtomicUsize>,
    /// The position of the next value to be pushed.
    tail: CachePadded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
    /// The distance of a position to the next one with the same index: a power of two above the number of slots.
    lap: usize,
}

// SAFETY: a slot has one owner at a time, and passes from one thread to another by a release store of its stamp that the
// other acquires. Values only move between threads, for which `T: Send` suffices.
unsafe impl<T: Send> Sync for Queue<T> {}
// SAFETY: as above; it owns the values that it drops.
unsafe impl<T: Send> Send for Queue<T> {}

impl<T> Queue<T> {
    /// Creates a queue for `capacity` values. If there is no memory for them, it is one for none, which is always full.
    pub fn new(capacity: usize) -> Self {
        let mut slots = Vec::new();
        let lap = capacity.checked_add(1);
        let lap = lap.and_then(usize::checked_next_power_of_two);
        if lap.is_some() && slots.try_reserve_exact(capacity).is_ok() {
            slots.extend((0..capacity).map(|position| Slot {
                stamp: AtomicUsize::new(position),
                value: UnsafeCell::new(MaybeUninit::uninit()),
            }));
        }
        Self {
            head: CachePadded(AtomicUsize::new(0)),
            tail: CachePadded(AtomicUsize::new(0)),
            slots: slots.into_boxed_slice(),
            lap: lap.unwrap_or(1),
        }
    }

    fn slot(&self, position: usize) -> Option<&Slot<T>> {
        self.slots.get(self.index(position))
    }

    fn index(&self, position: usize) -> usize {
        position & (self.lap - 1)
    }

    fn next(&self, position: usize) -> usize {
        let index = self.index(position);
        if index + 1 < self.slots.len() {
            position + 1
        } else {
            // The first index of the next lap.
            (position - index).wrapping_add(self.lap)
        }
    }

    /// Pushes a value.
    ///
    /// # Errors
    ///
    /// Returns the value if the queue is full.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut wait = Wait::default();
        let mut tail = self.tail.load(Relaxed);
        loop {
            let Some(slot) = self.slot(tail) else {
                return Err(value);
            };
            let stamp = slot.stamp.load(Acquire);
            if stamp == tail {
                let next = self.next(tail);
                match self.tail.compare_exchange_weak(tail, next, SeqCst, Relaxed) {
                    Ok(_) => {
                        // SAFETY: the stamp says that the slot is free for the thread that moves `tail` from here.
                        slot.value.with_mut(|slot| unsafe { (*slot).write(value) });
                        slot.stamp.store(tail + 1, Release);
                        return Ok(());
                    }
                    Err(moved) => tail = moved,
                }
                continue;
            }
            if stamp.wrapping_add(self.lap) == tail.wrapping_add(1) {
                fence(SeqCst);
                if self.head.load(Relaxed).wrapping_add(self.lap) == tail {
                    return Err(value);
                }
            }
            wait.once();
            tail = self.tail.load(Relaxed);
        }
    }

    /// Pops the oldest value.
    pub fn pop(&self) -> Option<T> {
        let mut wait = Wait::default();
        let mut head = self.head.load(Relaxed);
        loop {
            let slot = self.slot(head)?;
            let stamp = slot.stamp.load(Acquire);
            if stamp == head.wrapping_add(1) {
                let next = self.next(head);
                match self.head.compare_exchange_weak(head, next, SeqCst, Relaxed) {
                    Ok(_) => {
                        // SAFETY: the stamp says that the slot has a value for the thread that moves `head` from here,
                        // and its load acquires the write. The value is not read again: `head` has moved past it.
                        let value = slot
                            .value
                            .with(|slot| unsafe { (*slot).assume_init_read() });
                        slot.stamp.store(head.wrapping_add(self.lap), Release);
                        return Some(value);
                    }
                    Err(moved) => head = moved,
                }
                continue;
            }
            if stamp == head {
                fence(SeqCst);
                if self.tail.load(Relaxed) == head {
                    return None;
                }
            }
            wait.once();
            head = self.head.load(Relaxed);
        }
    }

    /// Returns the number of values at one moment of the call.
    pub fn len(&self) -> usize {
        loop {
            let tail = self.tail.load(SeqCst);
            let head = self.head.load(SeqCst);
            // Both are of one moment only if neither value was pushed between the loads.
            if self.tail.load(SeqCst) == tail {
                return self.between(head, tail);
            }
        }
    }

    fn between(&self, head: usize, tail: usize) -> usize {
        let (first, end) = (self.index(head), self.index(tail));
        if head == tail {
            0
        } else if first < end {
            end - first
        } else {
            self.slots.len() - first + end
        }
    }

    /// Returns `true` if there is no room for another value.
    pub fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }

    /// Returns how many values fit; zero if there was no memory.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

/// Waits for another thread to finish what takes it a few instructions, unless it is not running.
#[derive(Default)]
struct Wait {
    spins: u32,
}

impl Wait {
    fn once(&mut self) {
        // Loom knows by a yield that another thread must run first.
        if cfg!(loom) || self.spins == SPINS {
            thread::yield_now();
        } else {
            self.spins += 1;
            spin_loop();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Tries every order of a dozen pushes and pops.
    #[test]
    fn it_is_a_bounded_queue() {
        let length = if cfg!(miri) { 6 } else { 12 };
        for capacity in 0..4 {
            for order in 0..1_u32 << length {
                let queue = Queue::new(capacity);
                assert_eq!(queue.capacity(), capacity);
                let mut model = VecDeque::new();
                for number in 0..length {
                    // With a destructor, so that miri sees a value that is lost or dropped twice.
                    let value = number.to_string();
                    if order >> number & 1 == 0 {
                        assert_eq!(queue.pop(), model.pop_front());
                    } else if model.len() < capacity {
                        assert_eq!(queue.push(value.clone()), Ok(()));
                        model.push_back(value);
                    } else {
                        assert_eq!(queue.push(value.clone()), Err(value));
                    }
                    assert_eq!(queue.len(), model.len());
                    assert_eq!(queue.is_full(), model.len() == capacity);
                }
            }
        }
    }

    #[test]
    fn each_value_arrives_once_and_those_of_a_thread_in_order() {
        const THREADS: usize = 2;
        let count: usize = if cfg!(miri) { 100 } else { 50_000 };
        let queue = Queue::new(7);
        let popped = AtomicUsize::new(0);
        let received: Vec<Vec<(usize, usize)>> = std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..count {
                        let mut value = Box::new((thread, number));
                        while let Err(back) = queue.push(value) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let pop = || {
                let mut received = Vec::new();
                while popped.load(Relaxed) < THREADS * count {
                    match queue.pop() {
                        Some(value) => {
                            popped.fetch_add(1, Relaxed);
                            received.push(*value);
                        }
                        None => std::thread::yield_now(),
                    }
                }
                received
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(pop)).collect();
            let all = threads.into_iter().map(|thread| thread.join().unwrap());
            all.collect()
        });
        for received in &received {
            for thread in 0..THREADS {
                let of_thread = received.iter().filter(|value| value.0 == thread);
                assert!(of_thread.is_sorted(), "values of one thread stay in order");
            }
        }
        let mut all = received.concat();
        all.sort_unstable();
        let expected =
            (0..THREADS).flat_map(|thread| (0..count).map(move |number| (thread, number)));
        assert!(all.into_iter().eq(expected));
    }

    #[test]
    fn what_is_left_is_dropped_once() {
        let value = Arc::new(());
        let queue = Queue::new(3);
        for _ in 0..3 {
            queue.push(Arc::clone(&value)).unwrap();
        }
        drop(queue.pop());
        queue.push(Arc::clone(&value)).unwrap();
        assert_eq!(Arc::strong_count(&value), 4);
        drop(queue);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn one_that_there_is_no_memory_for_takes_nothing() {
        for capacity in [usize::MAX, usize::MAX / 8192] {
            let queue = Queue::<[u8; 4096]>::new(capacity);
            assert!(queue.push([0; 4096]).is_err());
            assert_eq!((queue.len(), queue.capacity()), (0, 0));
            assert!(queue.is_full() && queue.pop().is_none());
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    /// One thread pushes while another pops, through one or two slots, which are used again. Boxes show a value that is
    /// read twice or too early.
    ///
    /// Both are threads of the model, the pushing one first: loom remembers only the last access to each atomic, and would
    /// not see that a load by this thread races with a store that follows a load by the other one.
    #[test]
    fn values_arrive_once_and_in_order() {
        for capacity in 1..=2 {
            loom::model(move || {
                let queue = Arc::new(Queue::new(capacity));
                let pushing = {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || {
                        (1..=3)
                            .filter(|number| queue.push(Box::new(*number)).is_ok())
                            .collect::<Vec<i32>>()
                    })
                };
                let popping = {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || {
                        (0..2)
                            .filter_map(|_| queue.pop().map(|value| *value))
                            .collect::<Vec<i32>>()
                    })
                };
                let pushed = pushing.join().unwrap();
                let mut popped = popping.join().unwrap();
                popped.extend(std::iter::from_fn(|| queue.pop().map(|value| *value)));
                assert_eq!(popped, pushed);
            });
        }
    }

    /// Threads that push at once get different slots.
    #[test]
    fn threads_that_push_at_once_lose_nothing() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            let pushing = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.push(Box::new(1)).is_ok())
            };
            assert!(queue.push(Box::new(2)).is_ok());
            assert!(pushing.join().unwrap());
            let mut popped = [queue.pop(), queue.pop()].map(|value| value.map(|value| *value));
            popped.sort_unstable();
            assert_eq!(popped, [Some(1), Some(2)]);
            assert!(queue.pop().is_none());
        });
    }

    /// Threads that pop at once get different values, and none finds a queue empty that has one.
    #[test]
    fn threads_that_pop_at_once_share_no_value() {
        loom::model(|| {
            let queue = Arc::new(Queue::new(2));
            queue.push(Box::new(1)).unwrap();
            queue.push(Box::new(2)).unwrap();
            let popping = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.pop().map(|value| *value))
            };
            let mut popped = [queue.pop().map(|value| *value), popping.join().unwrap()];
            popped.sort_unstable();
            assert_eq!(popped, [Some(1), Some(2)]);
        });
    }
}
