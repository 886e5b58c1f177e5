//! Which calls of a name are logged, if one in `every` is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Set until a thread has asked: the first call of the process is logged.
const FIRST_CALL: u64 = 1 << 63;

/// Passes the unlogged calls of threads that have ended on to threads that begin.
///
/// Each thread counts its own calls and logs one in `every`. A program whose threads are short-lived would otherwise log
/// the first call of each thread, or none: a thread that ends leaves its calls since its last logged one here, and the
/// next thread to ask continues from there. A thread that finds nothing skips `every - 1` calls first.
///
/// Relaxed ordering suffices, since the number is all that threads exchange. `swap` gives it to one of several threads
/// that ask at the same time.
#[derive(Debug)]
pub(crate) struct Sampling(AtomicU64);

impl Sampling {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(FIRST_CALL))
    }

    /// Returns how many calls a thread skips before it logs its first one. `every` is at least 1.
    pub(crate) fn initial_skips(&self, every: u32) -> u64 {
        let stored = self.0.swap(0, Relaxed);
        let made = stored & !FIRST_CALL;
        let skips = u64::from(every).saturating_sub(1);
        let used = if stored & FIRST_CALL != 0 {
            0
        } else {
            made.min(skips)
        };
        if made > used {
            self.0.fetch_add(made - used, Relaxed);
        }
        if stored & FIRST_CALL != 0 {
            0
        } else {
            skips - used
        }
    }

    /// Takes over from a thread that ends: it would have skipped `left` more calls of `every - 1`.
    pub(super) fn take_over(&self, every: u64, left: u64) {
        let made = every.saturating_sub(1).saturating_sub(left);
        if made > 0 {
            self.0.fetch_add(made, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_of_the_process_is_logged() {
        let sampling = Sampling::new();
        assert_eq!(sampling.initial_skips(10), 0);
        assert_eq!(sampling.initial_skips(10), 9);
    }

    #[test]
    fn a_thread_continues_where_ended_ones_stopped() {
        let sampling = Sampling::new();
        sampling.initial_skips(10);
        // Made 4 calls since its last logged one, and would have skipped 5 more.
        sampling.take_over(10, 5);
        assert_eq!(sampling.initial_skips(10), 5);
        assert_eq!(sampling.initial_skips(10), 9);
    }

    #[test]
    fn calls_of_several_threads_add_up() {
        let sampling = Sampling::new();
        sampling.initial_skips(10);
        sampling.take_over(10, 2);
        sampling.take_over(10, 4);
        assert_eq!(sampling.initial_skips(10), 0, "7 + 5 calls were made");
        assert_eq!(sampling.initial_skips(10), 6, "3 of them are left");
    }

    #[test]
    fn calls_made_before_the_first_question_are_kept() {
        let sampling = Sampling::new();
        sampling.take_over(10, 6);
        assert_eq!(sampling.initial_skips(10), 0);
        assert_eq!(sampling.initial_skips(10), 6);
    }

    #[test]
    fn every_call_is_logged_without_a_skip() {
        let sampling = Sampling::new();
        for _ in 0..3 {
            assert_eq!(sampling.initial_skips(1), 0);
            sampling.take_over(1, 0);
        }
    }
}
