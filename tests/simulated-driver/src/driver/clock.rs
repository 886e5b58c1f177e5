//! The clock of the host and of all simulated devices, in nanoseconds.

use std::time::{Duration, Instant};

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockMode {
    /// With the clock of the machine: a kernel of a millisecond takes a millisecond.
    Real,
    /// By `advance`, and by any call that waits: the clock jumps to the end of what the call waits
    /// for.
    Virtual,
}

/// The time since the driver was loaded. It never goes back, even if the pace changes.
#[derive(Debug)]
pub(crate) struct Clock {
    pace: ClockMode,
    since: Instant,
    /// With the real pace: the time at `since`. With any other: the current time. In nanoseconds.
    at: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            pace: ClockMode::Real,
            since: Instant::now(),
            at: 0,
        }
    }

    pub(crate) fn pace(&self) -> ClockMode {
        self.pace
    }

    pub(crate) fn now(&self) -> u64 {
        match self.pace {
            ClockMode::Real => self.at + nanoseconds(self.since.elapsed()),
            ClockMode::Virtual => self.at,
        }
    }

    pub(crate) fn set_pace(&mut self, pace: ClockMode) {
        self.at = self.now();
        self.since = Instant::now();
        self.pace = pace;
    }

    /// Moves the clock, unless its pace is real.
    pub(crate) fn move_to(&mut self, at: u64) {
        if self.pace != ClockMode::Real {
            self.at = self.at.max(at);
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Clock, ClockMode};

    #[test]
    fn time_never_goes_back_when_the_pace_changes() {
        let mut clock = Clock::new();
        let real = clock.now();
        clock.set_pace(ClockMode::Virtual);
        let held = clock.now();
        assert!(held >= real);
        assert_eq!(clock.now(), held);
        clock.move_to(held + 1_000);
        clock.move_to(held);
        assert_eq!(clock.now(), held + 1_000);
        clock.set_pace(ClockMode::Real);
        assert!(clock.now() >= held + 1_000);
    }
}
