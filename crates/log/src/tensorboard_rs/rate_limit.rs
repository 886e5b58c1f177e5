//! A rate limit that bounds a queue whose length cannot be read.
//!
//! It is a leaky bucket. A model of the queue holds [`CAPACITY`] values and is emptied at [`PER_SECOND`]; a value that
//! does not fit is refused. As long as the writer is at least that fast, the real queue is never longer than the model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use profiler_host::sync::RaceCell;

/// How many values may wait.
pub(super) const CAPACITY: u64 = 65_536;

/// How many values leave the model in a second: a fifth of what `tensorboard-rs` was measured to write.
pub(super) const PER_SECOND: u64 = 50_000;

const NANOSECONDS_EACH: u64 = 1_000_000_000 / PER_SECOND;

/// The time at which the model of the queue is empty, in nanoseconds on the caller's clock.
#[derive(Debug)]
pub(super) struct RateLimit(AtomicU64);

impl RateLimit {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns `true` if one more value fits at the time `now`, and adds it to the model.
    pub(super) fn admit(&self, now: u64) -> bool {
        let with_one_more = |empty_at: u64| {
            let empty_at = empty_at.max(now) + NANOSECONDS_EACH;
            (empty_at - now <= CAPACITY * NANOSECONDS_EACH).then_some(empty_at)
        };
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_one_more)
            .is_ok()
    }
}

/// Returns the nanoseconds since the first call; they overflow after 584 years.
pub(super) fn now() -> u64 {
    static START: RaceCell<Instant> = RaceCell::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, NANOSECONDS_EACH, PER_SECOND, RateLimit};

    #[test]
    fn values_that_do_not_fit_are_refused_until_others_have_left() {
        let limit = RateLimit::new();
        let admitted = |now, offered: u64| (0..offered).filter(|_| limit.admit(now)).count() as u64;
        assert_eq!(admitted(0, CAPACITY + 100), CAPACITY);
        assert_eq!(admitted(NANOSECONDS_EACH - 1, 1), 0);
        assert_eq!(admitted(NANOSECONDS_EACH, 2), 1);
        assert_eq!(
            admitted(NANOSECONDS_EACH + 1_000_000_000, 2 * PER_SECOND),
            PER_SECOND
        );
        assert_eq!(admitted(3_600_000_000_000, 2 * CAPACITY), CAPACITY);
    }
}
