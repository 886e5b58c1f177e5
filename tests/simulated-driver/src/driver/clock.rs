//! The clock of the host and of every simulated device, in nanoseconds.

use std::time::{Duration, Instant};

/// What makes time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The clock of the machine: a kernel of a millisecond takes a millisecond.
    Real,
    /// `advance`, and any call that waits: it takes as long as what it waits for.
    Virtual,
    /// `advance` alone: a call that waits returns when another thread advanced far enough.
    Manual,
}

/// Time since the driver was loaded; it never goes back, whatever the pace is changed to.
#[derive(Debug)]
pub(crate) struct Clock {
    pace: Pace,
    since: Instant,
    /// Nanoseconds at `since` with the real pace, and now with any other.
    at: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            pace: Pace::Real,
            since: Instant::now(),
            at: 0,
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace
    }

    pub(crate) fn now(&self) -> u64 {
        match self.pace {
            Pace::Real => self.at + nanoseconds(self.since.elapsed()),
            Pace::Virtual | Pace::Manual => self.at,
        }
    }

    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.at = self.now();
        self.since = Instant::now();
        self.pace = pace;
    }

    /// Moves a clock that is not real; the real one moves by itself.
    pub(crate) fn move_to(&mut self, at: u64) {
        if self.pace != Pace::Real {
            self.at = self.at.max(at);
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Clock, Pace};

    #[test]
    fn time_never_goes_back_when_the_pace_changes() {
        let mut clock = Clock::new();
        let real = clock.now();
        clock.set_pace(Pace::Virtual);
        let held = clock.now();
        assert!(held >= real);
        assert_eq!(clock.now(), held);
        clock.move_to(held + 1_000);
        clock.move_to(held);
        assert_eq!(clock.now(), held + 1_000);
        clock.set_pace(Pace::Real);
        assert!(clock.now() >= held + 1_000);
    }
}
