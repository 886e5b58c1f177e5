//! For how long a scope's children on other threads ran while its own thread ran no child.
//!
//! # Protocol
//!
//! One word holds the whole state, so that each change is one compare-and-exchange, and nothing waits:
//!
//! | bits | meaning |
//! |---|---|
//! | 63 | `ENDED`: the scope has ended, and nothing changes the word any more |
//! | 62 | `AWAY`: the scope's thread runs a child, or is not in the scope: a future between two polls |
//! | 52 to 61 | how many children run on other threads |
//! | 0 to 51 | the time, in ticks, as a signed number |
//!
//! The scope is *covered* while children run and neither flag is set. While it is not covered, the time is the sum of the
//! covered intervals so far. While it is covered, it is that sum less the instant at which the current interval began;
//! the change that ends the interval adds the instant of its end. So the time depends only on changes that are in the
//! word, and no second variable must be kept in step.
//!
//! A change reads the clock after it has read the word that it replaces. The instant is therefore not before that of the
//! preceding change, intervals do not overlap, and their sum is at most the time from the scope's start to its end.
//! [`end`](Coverage::end) is the exception: the scope ended at an instant that was read before. If a child enters or
//! leaves between that instant and the change, the sum is wrong by at most the time between the two.
//!
//! Relaxed ordering suffices: the word is complete in itself, and a thread that was joined, or whose result was
//! received, has made its changes before [`end`](Coverage::end) replaces the word.
//!
//! # Limits
//!
//! Instants count from the creation of the value. 51 bits hold eight days at 3 GHz. The number of children stops at
//! 1,023 and then stays there: the scope counts as covered until it ends.

use profiler_host::sync::primitive::AtomicU64;
use profiler_host::sync::primitive::atomic::Ordering::Relaxed;
use profiler_host::sync::primitive::const_unless_loom;

const ENDED: u64 = 1 << 63;
const AWAY: u64 = 1 << 62;
const CHILD: u64 = 1 << 52;
const CHILDREN: u64 = AWAY - CHILD;
const TIME: u64 = CHILD - 1;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Coverage {
    word: AtomicU64,
    /// The instant from which the others count.
    origin: u64,
}

impl Coverage {
    const_unless_loom! {
        /// Returns the coverage of a scope whose thread is in it now, and runs no child.
        pub(crate) fn new(now: u64) -> Self {
            Self {
                word: AtomicU64::new(0),
                origin: now,
            }
        }
    }

    /// Notes that a child begins to run on another thread. `now` reads the clock.
    pub(crate) fn enter(&self, now: impl Fn() -> u64) {
        self.change(now, |word| {
            if word & CHILDREN == CHILDREN {
                word
            } else {
                word + CHILD
            }
        });
    }

    /// Notes that a child does not run any more.
    pub(crate) fn leave(&self, now: impl Fn() -> u64) {
        self.change(now, |word| match word & CHILDREN {
            // Children that were not counted may be among those that run.
            0 | CHILDREN => word,
            _ => word - CHILD,
        });
    }

    /// Notes that the scope's own thread leaves the scope, or enters a child.
    pub(crate) fn pause(&self, now: impl Fn() -> u64) {
        self.change(now, |word| word | AWAY);
    }

    /// Notes that the scope's own thread is in the scope itself again.
    pub(crate) fn resume(&self, now: impl Fn() -> u64) {
        self.change(now, |word| word & !AWAY);
    }

    /// Ends the scope at the instant `at`, and returns for how many ticks it was covered.
    pub(crate) fn end(&self, at: u64) -> i64 {
        let before = self.change(|| at, |word| word | ENDED);
        let end = self.since_origin(at);
        // The clock was read before the word: children may have begun, and ended, in between.
        ticks(with_time(before, end, ENDED)).clamp(0, end.cast_signed().max(0))
    }

    fn since_origin(&self, instant: u64) -> u64 {
        instant.wrapping_sub(self.origin)
    }

    /// Changes the flags and the number of children, and returns the word before that. A scope that has ended does not
    /// change.
    fn change(&self, now: impl Fn() -> u64, change: impl Fn(u64) -> u64) -> u64 {
        let mut word = self.word.load(Relaxed);
        loop {
            let changed = change(word);
            if word & ENDED != 0 || changed == word {
                return word;
            }
            let next = if is_covered(word) == is_covered(changed) {
                changed
            } else {
                with_time(word, self.since_origin(now()), changed)
            };
            match self
                .word
                .compare_exchange_weak(word, next, Relaxed, Relaxed)
            {
                Ok(_) => return word,
                Err(other) => word = other,
            }
        }
    }
}

const fn is_covered(word: u64) -> bool {
    word & CHILDREN != 0 && word & (AWAY | ENDED) == 0
}

/// Returns `changed` with the time that the word has after the change from `word` at this instant.
const fn with_time(word: u64, instant: u64, changed: u64) -> u64 {
    let time = match (is_covered(word), is_covered(changed)) {
        (false, true) => word.wrapping_sub(instant),
        (true, false) => word.wrapping_add(instant),
        _ => word,
    };
    (changed & !TIME) | (time & TIME)
}

/// Returns the time of a word as a signed number.
const fn ticks(word: u64) -> i64 {
    let unused = u64::BITS - TIME.count_ones();
    (word << unused).cast_signed() >> unused
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A coverage and its clock.
    struct Bench {
        coverage: Coverage,
        now: Cell<u64>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                coverage: Coverage::new(1_000),
                now: Cell::new(1_000),
            }
        }

        fn at(&self, instant: u64) -> (&Coverage, impl Fn() -> u64) {
            self.now.set(1_000 + instant);
            (&self.coverage, || self.now.get())
        }

        fn enter(&self, instant: u64) {
            let (coverage, now) = self.at(instant);
            coverage.enter(now);
        }

        fn leave(&self, instant: u64) {
            let (coverage, now) = self.at(instant);
            coverage.leave(now);
        }

        fn pause(&self, instant: u64) {
            let (coverage, now) = self.at(instant);
            coverage.pause(now);
        }

        fn resume(&self, instant: u64) {
            let (coverage, now) = self.at(instant);
            coverage.resume(now);
        }

        fn end(&self, instant: u64) -> i64 {
            self.coverage.end(1_000 + instant)
        }
    }

    #[test]
    fn an_instant_with_several_children_counts_once() {
        let bench = Bench::new();
        bench.enter(10);
        bench.enter(20);
        bench.leave(50);
        bench.leave(60);
        bench.enter(80);
        bench.leave(90);
        assert_eq!(bench.end(100), 60);
    }

    #[test]
    fn an_instant_in_which_the_thread_runs_a_child_does_not_count() {
        let bench = Bench::new();
        bench.enter(10);
        bench.pause(20);
        bench.enter(25);
        bench.leave(28);
        bench.resume(30);
        bench.leave(40);
        bench.pause(50);
        bench.resume(60);
        assert_eq!(bench.end(100), 20);
    }

    #[test]
    fn a_child_that_outlives_the_scope_counts_until_the_scope_ends() {
        let bench = Bench::new();
        bench.enter(90);
        assert_eq!(bench.end(100), 10);
        bench.leave(200);
        bench.enter(210);
        assert_eq!(bench.end(300), 10, "it has ended");
    }

    #[test]
    fn a_clock_that_goes_back_a_little_does_not_make_the_time_negative() {
        let bench = Bench::new();
        bench.enter(20);
        bench.leave(17);
        assert_eq!(bench.end(18), 0);
    }

    #[test]
    fn more_children_than_can_be_counted_cover_the_scope_to_its_end() {
        let bench = Bench::new();
        for _ in 0..2_000 {
            bench.enter(10);
        }
        for _ in 0..2_000 {
            bench.leave(20);
        }
        assert_eq!(bench.end(100), 90);
    }

    #[test]
    fn a_child_that_was_not_counted_may_leave() {
        let bench = Bench::new();
        bench.leave(10);
        bench.enter(20);
        assert_eq!(bench.end(30), 10);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A coverage, and a clock that counts how often it was read.
    struct Bench {
        coverage: Coverage,
        clock: AtomicU64,
    }

    impl Bench {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                coverage: Coverage::new(0),
                clock: AtomicU64::new(0),
            })
        }

        fn now(&self) -> u64 {
            self.clock
                .fetch_add(1, loom::sync::atomic::Ordering::SeqCst)
        }

        fn run_child(&self) {
            self.coverage.enter(|| self.now());
            self.coverage.leave(|| self.now());
        }
    }

    #[test]
    fn children_never_cover_more_than_the_time_of_the_scope() {
        loom::model(|| {
            let bench = Bench::new();
            let children = [0, 1].map(|_| {
                let bench = Arc::clone(&bench);
                thread::spawn(move || bench.run_child())
            });
            for child in children {
                child.join().unwrap();
            }
            let end = bench.now();
            let covered = bench.coverage.end(end);
            assert!(
                (1..=end.cast_signed()).contains(&covered),
                "{covered} of {end}"
            );
        });
    }

    #[test]
    fn a_scope_that_ends_or_enters_a_child_meanwhile_stays_within_its_time() {
        loom::model(|| {
            let bench = Bench::new();
            let child = {
                let bench = Arc::clone(&bench);
                thread::spawn(move || bench.run_child())
            };
            bench.coverage.pause(|| bench.now());
            bench.coverage.resume(|| bench.now());
            let end = bench.now();
            let covered = bench.coverage.end(end);
            child.join().unwrap();
            assert!(
                (0..=end.cast_signed()).contains(&covered),
                "{covered} of {end}"
            );
        });
    }
}
