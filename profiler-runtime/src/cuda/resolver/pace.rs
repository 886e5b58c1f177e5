//! How long the resolver sleeps between two rounds.

use std::time::Duration;

/// While a flush waits for the device.
const POLL_URGENT: Duration = Duration::from_micros(200);
/// While scopes arrive and the device completes them.
const POLL_ACTIVE: Duration = Duration::from_millis(1);
/// The limit of the back-off while the device works on something long.
const POLL_BACKED_OFF: Duration = Duration::from_millis(16);
/// After so many rounds that found nothing to do, the resolver sleeps until a scope ends: one that ends now and then should
/// not pay for the wakeup.
const QUIET_ROUNDS: u32 = 50;

/// What a round of the resolver found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// It took or read something.
    pub(super) progress: bool,
    /// A flush waits.
    pub(super) is_urgent: bool,
    pub(super) waiting: Waiting,
}

/// What waits for the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    #[default]
    Nothing,
    /// Scopes wait, or replays may come.
    Some,
    /// Scopes, which have nearly all pairs that there may be. The device has freed few of them since the round before.
    AllPairs,
}

/// The pace of the resolver: it backs off while nothing happens. A full ring wakes it at any time.
#[derive(Default)]
pub(super) struct Pace {
    interval: Duration,
    quiet_rounds: u32,
}

impl Pace {
    /// Returns how long to sleep after a round; `None` until a scope ends.
    pub(super) fn poll_interval(&mut self, found: Found) -> Option<Duration> {
        self.quiet_rounds = if found.progress || found.waiting != Waiting::Nothing {
            0
        } else {
            self.quiet_rounds.saturating_add(1)
        };
        // A device that is behind frees few pairs in a round, and no more of them if it is asked more often.
        self.interval = if found.progress && found.waiting != Waiting::AllPairs {
            POLL_ACTIVE
        } else {
            (self.interval * 2).clamp(POLL_ACTIVE, POLL_BACKED_OFF)
        };
        if found.is_urgent {
            Some(POLL_URGENT)
        } else {
            (self.quiet_rounds <= QUIET_ROUNDS).then_some(self.interval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Found = Found {
        progress: false,
        is_urgent: false,
        waiting: Waiting::Nothing,
    };
    const WATCHING: Found = Found {
        waiting: Waiting::Some,
        ..NOTHING
    };
    const PROGRESS: Found = Found {
        progress: true,
        ..WATCHING
    };

    #[test]
    fn a_long_kernel_makes_the_resolver_back_off_but_not_idle() {
        let mut pace = Pace::default();
        assert_eq!(pace.poll_interval(PROGRESS), Some(POLL_ACTIVE));
        let waits = [(); 6].map(|()| pace.poll_interval(WATCHING));
        assert_eq!(
            waits.map(|wait| wait.map_or(0, |wait| wait.as_millis())),
            [2, 4, 8, 16, 16, 16]
        );
        for _ in 0..2 * QUIET_ROUNDS {
            assert_eq!(pace.poll_interval(WATCHING), Some(POLL_BACKED_OFF));
        }
        assert_eq!(pace.poll_interval(PROGRESS), Some(POLL_ACTIVE));
    }

    #[test]
    fn a_resolver_with_nothing_to_do_sleeps_until_a_scope_ends() {
        let mut pace = Pace::default();
        for _ in 0..QUIET_ROUNDS {
            let wait = pace.poll_interval(NOTHING);
            assert!(wait.is_some_and(|wait| wait <= POLL_BACKED_OFF));
        }
        assert_eq!(pace.poll_interval(NOTHING), None);
        let urgent = Found {
            is_urgent: true,
            ..NOTHING
        };
        assert_eq!(pace.poll_interval(urgent), Some(POLL_URGENT));
        assert_eq!(pace.poll_interval(PROGRESS), Some(POLL_ACTIVE));
        assert_eq!(pace.poll_interval(NOTHING), Some(2 * POLL_ACTIVE));
    }

    #[test]
    fn a_device_that_is_behind_is_asked_less_often_while_it_frees_few_pairs() {
        let mut pace = Pace::default();
        let starved = Found {
            waiting: Waiting::AllPairs,
            ..PROGRESS
        };
        assert_eq!(pace.poll_interval(PROGRESS), Some(POLL_ACTIVE));
        let waits = [(); 5].map(|()| pace.poll_interval(starved));
        assert_eq!(
            waits.map(|wait| wait.map_or(0, |wait| wait.as_millis())),
            [2, 4, 8, 16, 16]
        );
        assert_eq!(pace.poll_interval(PROGRESS), Some(POLL_ACTIVE));
    }
}
