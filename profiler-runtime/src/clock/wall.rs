//! Wall time: the system's clock, and its relation to ticks.

use std::time::{Duration, SystemTime};

use profiler_host::process::platform::{self, unix_ns};

use super::clock;

/// The number of brackets that [`WallAnchor::narrow`] compares.
const BRACKETS: usize = 8;

/// Relates ticks of the recent past to wall time.
///
/// Each batch of records has an anchor of its own: the rate of the counter is known to some parts in 10⁴ only, so an
/// old anchor would drift by seconds a day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallAnchor {
    ticks: u64,
    wall: SystemTime,
}

impl WallAnchor {
    /// Reads both clocks once.
    pub(crate) fn now() -> Self {
        Self {
            ticks: clock().ticks(),
            wall: platform::wall_time(),
        }
    }

    #[cfg(test)]
    pub(crate) fn at(ticks: u64, wall: SystemTime) -> Self {
        Self { ticks, wall }
    }

    /// Reads both clocks several times and keeps the closest pair of readings: the one where the fewest ticks passed
    /// around the reading of the system's clock.
    pub(crate) fn narrow() -> Self {
        let bracket = || {
            let before = clock().ticks();
            let wall = platform::wall_time();
            let after = clock().ticks();
            let ticks = u64::midpoint(before, after);
            (after.saturating_sub(before), Self { ticks, wall })
        };
        let (_, narrowest) = (1..BRACKETS)
            .map(|_| bracket())
            .fold(
                bracket(),
                |best, next| if next.0 < best.0 { next } else { best },
            );
        narrowest
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the nanoseconds since the Unix epoch.
    pub(crate) fn unix_ns(&self) -> i64 {
        unix_ns(self.wall)
    }

    /// Returns the ticks at a wall time close to the anchor.
    pub(crate) fn ticks_at(&self, wall: SystemTime) -> u64 {
        let ago = self.unix_ns().saturating_sub(unix_ns(wall));
        let distance = clock().in_ticks(Duration::from_nanos(ago.unsigned_abs()));
        if ago >= 0 {
            self.ticks.saturating_sub(distance)
        } else {
            self.ticks.saturating_add(distance)
        }
    }

    /// Returns the wall time of a reading of [`Clock::ticks`](super::Clock::ticks) before the anchor.
    pub(crate) fn wall_time(&self, ticks: u64) -> SystemTime {
        let age = clock().nanoseconds(self.ticks.saturating_sub(ticks) as f64);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates"
        )]
        let age = Duration::from_nanos(age as u64);
        self.wall.checked_sub(age).unwrap_or(self.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other systems have no times that far in the past.
    #[cfg(unix)]
    #[test]
    fn a_time_far_from_the_present_saturates() {
        let far = Duration::from_secs(1 << 40);
        let (future, past) = (SystemTime::UNIX_EPOCH + far, SystemTime::UNIX_EPOCH - far);
        assert_eq!(unix_ns(future), i64::MAX);
        assert_eq!(unix_ns(past), -i64::MAX);
        for wall in [future, past] {
            let anchor = WallAnchor::at(u64::MAX, wall);
            assert!(anchor.wall_time(0) <= wall);
        }
    }

    #[test]
    fn an_anchor_gives_the_wall_time_of_the_recent_past() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let second = clock().in_ticks(Duration::from_secs(1));
        let anchor = WallAnchor::at(100 * second, wall);
        assert_eq!(anchor.wall_time(100 * second), wall);
        let age = wall.duration_since(anchor.wall_time(97 * second));
        let age = age.expect("it is earlier").as_secs_f64();
        assert!((age - 3.0).abs() < 1e-3, "{age}");
        // A later reading has no wall time yet.
        assert_eq!(anchor.wall_time(101 * second), wall);
    }

    #[test]
    fn a_narrow_anchor_lies_between_readings_around_it() {
        let (before, wall_before) = (clock().ticks(), SystemTime::now());
        let anchor = WallAnchor::narrow();
        assert!((before..=clock().ticks()).contains(&anchor.ticks()));
        assert!((unix_ns(wall_before)..=unix_ns(SystemTime::now())).contains(&anchor.unix_ns()));
    }
}
