//! Converting the ticks of a window to wall time.

use crate::clock::{WallAnchor, clock};

/// The line through two readings of both clocks. Calibration knows the counter's rate to a few parts in 10⁴; over
/// seconds, two readings of the system's clock are more precise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockLine {
    ticks: u64,
    unix_ns: i64,
    ns_per_tick: f64,
}

/// From this distance on, reading errors are smaller than the error of the calibration.
const LONG_NS: f64 = 5e8;
/// Ignore a rate further off than this: the system's clock was set between the readings. A calibration on a busy
/// machine has been off by 0.5 %.
const FARTHEST: f64 = 1e-2;

impl ClockLine {
    pub(crate) fn through(first: WallAnchor, last: WallAnchor) -> Self {
        let calibrated = clock().nanoseconds(1.0);
        let ticks = last.ticks().saturating_sub(first.ticks());
        let between = last.unix_ns().saturating_sub(first.unix_ns()) as f64;
        let seen = between / ticks.max(1) as f64;
        let is_better = between > LONG_NS && (seen / calibrated - 1.0).abs() < FARTHEST;
        Self {
            ticks: last.ticks(),
            unix_ns: last.unix_ns(),
            ns_per_tick: if is_better { seen } else { calibrated },
        }
    }

    /// Converts ticks to nanoseconds since the Unix epoch.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what is beyond 64 bits is cut off there"
    )]
    pub(crate) fn unix_ns(&self, ticks: u64) -> i64 {
        let apart = ticks.wrapping_sub(self.ticks).cast_signed();
        self.unix_ns.saturating_add(self.ns(apart) as i64)
    }

    /// Converts a number of ticks to nanoseconds.
    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    // Other systems have no times that far in the past.
    #[cfg(unix)]
    #[test]
    fn a_wall_clock_far_from_the_present_is_cut_off_at_64_bits() {
        use std::time::SystemTime;

        let far = Duration::from_secs(1 << 40);
        let (past, future) = (SystemTime::UNIX_EPOCH - far, SystemTime::UNIX_EPOCH + far);
        for (first, last, end) in [
            (past, future, i64::MAX),
            (future, past, -i64::MAX),
            (future, future, i64::MAX),
        ] {
            let line = ClockLine::through(WallAnchor::at(5, first), WallAnchor::at(10, last));
            assert_eq!(line.unix_ns(10), end);
            // Times before and after both anchors are cut off too.
            let around = [0, 1 << 62].map(|ticks| line.unix_ns(ticks));
            assert!(around[0] <= around[1]);
        }
    }

    #[test]
    fn a_line_goes_through_both_ends() {
        let first = WallAnchor::narrow();
        std::thread::sleep(Duration::from_millis(600));
        let last = WallAnchor::narrow();
        let line = ClockLine::through(first, last);
        for anchor in [first, last] {
            let off = (line.unix_ns(anchor.ticks()) - anchor.unix_ns()).abs();
            assert!(off <= 2, "{off} ns off");
        }
    }
}
