//! How long the resolver sleeps between two rounds.

use std::time::Duration;

/// While a flush waits for the device.
const POLL_URGENT: Duration = Duration::from_micros(200);
/// While scopes arrive and the device completes them.
const POLL_ACTIVE: Duration = Duration::from_millis(1);
/// The limit of the back-off while the device works on something long.
const POLL_BACKED_OFF: Duration = Duration::from_millis(16);
/// After [`QUIET_ROUNDS`] rounds that found nothing to do.
const POLL_IDLE: Duration = Duration::from_millis(200);
const QUIET_ROUNDS: u32 = 50;

/// The pace of the resolver: it backs off while nothing happens. A full ring wakes it at any time.
#[derive(Default)]
pub(super) struct Pace {
    interval: Duration,
    quiet_rounds: u32,
}

impl Pace {
    /// Returns how long to sleep after a round.
    ///
    /// `progress`: the round took or read something. `is_watching`: scopes wait for the device, or replays may come.
    /// `urgent`: a flush waits.
    pub(super) fn poll_interval(
        &mut self,
        progress: bool,
        is_watching: bool,
        urgent: bool,
    ) -> Duration {
        self.quiet_rounds = if progress || is_watching {
            0
        } else {
            self.quiet_rounds.saturating_add(1)
        };
        self.interval = if progress {
            POLL_ACTIVE
        } else {
            (self.interval * 2).clamp(POLL_ACTIVE, POLL_BACKED_OFF)
        };
        if urgent {
            POLL_URGENT
        } else if self.quiet_rounds > QUIET_ROUNDS {
            POLL_IDLE
        } else {
            self.interval
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_kernel_makes_the_resolver_back_off_but_not_idle() {
        let mut pace = Pace::default();
        assert_eq!(pace.poll_interval(true, true, false), POLL_ACTIVE);
        let waits: Vec<_> = (0..6)
            .map(|_| pace.poll_interval(false, true, false).as_millis())
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 16, 16]);
        for _ in 0..2 * QUIET_ROUNDS {
            assert_eq!(pace.poll_interval(false, true, false), POLL_BACKED_OFF);
        }
        assert_eq!(pace.poll_interval(true, true, false), POLL_ACTIVE);
    }

    #[test]
    fn a_resolver_with_nothing_to_do_becomes_idle() {
        let mut pace = Pace::default();
        for _ in 0..QUIET_ROUNDS {
            assert!(pace.poll_interval(false, false, false) <= POLL_BACKED_OFF);
        }
        assert_eq!(pace.poll_interval(false, false, false), POLL_IDLE);
        assert_eq!(pace.poll_interval(false, false, true), POLL_URGENT);
        assert_eq!(pace.poll_interval(true, false, false), POLL_ACTIVE);
        assert_eq!(pace.poll_interval(false, false, false), 2 * POLL_ACTIVE);
    }
}
