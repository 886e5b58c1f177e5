//! A bound on a queue that cannot be looked into: how many values are let through.
//!
//! The queue is imagined. It holds [`CAPACITY`] values and is emptied at [`PER_SECOND`]; what would
//! not fit is refused. A writer that is at least that fast then never has more in its real one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::sync::RaceCell;

/// Values that may wait.
pub(super) const CAPACITY: u64 = 65_536;

/// Values written in a second, a fifth of what `tensorboard-rs` was measured to write.
pub(super) const PER_SECOND: u64 = 50_000;

const NANOSECONDS_EACH: u64 = 1_000_000_000 / PER_SECOND;

/// When the imagined queue is empty, in nanoseconds on a clock of the caller.
#[derive(Debug)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether one more value fits at the time `now`; it is then in the queue.
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

/// Nanoseconds since the first call; enough for 584 years.
pub(super) fn now() -> u64 {
    static START: RaceCell<Instant> = RaceCell::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, NANOSECONDS_EACH, PER_SECOND, Pace};

    #[test]
    fn what_does_not_fit_is_refused_until_there_is_room() {
        let pace = Pace::new();
        let admitted = |now, offered: u64| (0..offered).filter(|_| pace.admit(now)).count() as u64;
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
