//! How a thread that others publish work for sleeps without a timeout, although they publish it without a lock.
//!
//! # Protocol
//!
//! The thread announces that it dozes, and looks for work once more before it sleeps. Whoever publishes work looks
//! afterwards whether the thread dozes, and if so, unparks it.
//!
//! | `is_dozing` | the thread | left by |
//! |---|---|---|
//! | `false` | looks for work again by itself | [`begin`](Doze::begin) |
//! | `true` | sleeps until it is unparked, or will soon | the first [`must_unpark`](Doze::must_unpark), by a swap; [`end`](Doze::end) |
//!
//! *The race.* This is Dekker's: each side stores, then loads what the other stored. If both loads came before both
//! stores, the work would be neither found nor announced. A full fence on both sides excludes that, but the side that
//! publishes is a measured call, where a fence would take as long as the rest. So only the compiler is kept from
//! swapping its store and its load, and the thread waits for [`SETTLED`] between its store and its load. A processor
//! makes a store visible within microseconds of the instruction, and an interrupt or a switch of threads does not let a
//! load overtake a store either: it makes both complete first. So a publisher that has not seen the
//! announcement has made its work visible long before the thread looks for the last time. (Linux has
//! `membarrier` for the same purpose. Waiting needs no system call, and works everywhere.) Under loom, which knows no
//! time, a fence on either side takes the place of the wait.
//!
//! *The wakeup.* A swap lets one publisher unpark the thread. It does so after it has published, and what happens
//! before `unpark` is visible once `park` has returned. Others that come at the same time see `false`: their work waits
//! for the thread's next round, which comes by itself, since the thread sleeps without a timeout only if `is_dozing` was
//! `true` from [`begin`](Doze::begin) to the last look.

use std::time::Duration;

use crate::sync::primitive::AtomicBool;
use crate::sync::primitive::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
#[cfg(not(loom))]
use crate::sync::primitive::atomic::compiler_fence;
use crate::sync::primitive::atomic::fence;
use crate::sync::primitive::const_unless_loom;

/// How long a thread waits between [`Doze::begin`] and its last look for work: thousands of times as long as a store
/// takes to become visible.
pub const SETTLED: Duration = Duration::from_millis(10);

/// Whether a thread dozes: see the module.
#[derive(Debug)]
pub struct Doze {
    is_dozing: AtomicBool,
}

impl Doze {
    const_unless_loom! {
        /// Creates the state of a thread that does not doze.
        pub fn new() -> Self {
            Self { is_dozing: AtomicBool::new(false) }
        }
    }

    /// Called after work was published: returns `true` if the caller must unpark the thread.
    #[inline(always)]
    pub fn must_unpark(&self) -> bool {
        #[cfg(not(loom))]
        compiler_fence(SeqCst);
        #[cfg(loom)]
        fence(SeqCst);
        self.is_dozing.load(Relaxed) && self.wins()
    }

    #[cold]
    #[inline(never)]
    fn wins(&self) -> bool {
        self.is_dozing.swap(false, AcqRel)
    }

    /// Announces on the thread that it dozes. It may sleep without a timeout once it has waited for [`SETTLED`], has
    /// looked for work again, and still [dozes](Self::is_dozing).
    pub fn begin(&self) {
        // A swap, since loom lets a store come between the two halves of another thread's swap.
        self.is_dozing.swap(true, Relaxed);
        fence(SeqCst);
    }

    /// Returns on the thread whether nobody has had reason to unpark it since [`begin`](Self::begin).
    pub fn is_dozing(&self) -> bool {
        self.is_dozing.load(Relaxed)
    }

    /// Announces on the thread that it looks for work again by itself.
    pub fn end(&self) {
        self.is_dozing.swap(false, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_of_those_who_publish_unparks_the_thread() {
        let doze = Doze::new();
        assert!(!doze.must_unpark());
        doze.begin();
        assert!(doze.is_dozing());
        assert_eq!([doze.must_unpark(), doze.must_unpark()], [true, false]);
        assert!(!doze.is_dozing());
        doze.begin();
        doze.end();
        assert!(!doze.must_unpark());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::primitive::{Arc, AtomicUsize, thread};
    use crate::sync::ring;

    /// Takes values until all have come. A wakeup that is missed is a deadlock, which loom reports.
    fn take(doze: &Doze, mut look: impl FnMut() -> usize, all: usize) {
        let mut taken = 0;
        let mut has_waited = false;
        while taken < all {
            match look() {
                0 if has_waited && doze.is_dozing() => thread::park(),
                0 => {
                    doze.begin();
                    has_waited = true;
                }
                some => {
                    taken += some;
                    doze.end();
                    has_waited = false;
                }
            }
        }
    }

    #[test]
    fn no_value_is_left_in_a_ring_while_the_thread_sleeps() {
        loom::model(|| {
            let doze = Arc::new(Doze::new());
            let (mut producer, mut consumer) = ring::ring(2).unwrap();
            let (its_doze, taking) = (Arc::clone(&doze), thread::current());
            let pushing = thread::spawn(move || {
                for number in 0..2 {
                    producer.push(number).unwrap();
                    if its_doze.must_unpark() {
                        taking.unpark();
                    }
                }
            });
            take(&doze, || std::iter::from_fn(|| consumer.pop()).count(), 2);
            pushing.join().unwrap();
        });
    }

    #[test]
    fn two_that_publish_at_once_are_both_seen() {
        // All orders would take minutes.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let doze = Arc::new(Doze::new());
            let published = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let publish = |place: usize| {
                let (doze, published) = (Arc::clone(&doze), Arc::clone(&published));
                let taking = thread::current();
                thread::spawn(move || {
                    published[place].fetch_add(1, Relaxed);
                    if doze.must_unpark() {
                        taking.unpark();
                    }
                })
            };
            let threads = [0, 1].map(publish);
            let look = || published.iter().map(|place| place.swap(0, AcqRel)).sum();
            take(&doze, look, 2);
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }
}
