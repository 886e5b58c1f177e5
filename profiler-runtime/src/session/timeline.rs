//! What turns the ticks of a window into wall time.

use crate::clock::{WallAnchor, clock};

/// The line through two readings of both clocks. The counter's rate is known to some parts in 10⁴ only by its
/// calibration; over seconds, the system's clock tells it better.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    ticks: u64,
    unix_ns: i64,
    ns_per_tick: f64,
}

/// From here on, what the readings are off by is less than what the calibration is.
const LONG_NS: f64 = 5e8;
/// A system clock that was set between the readings is not to be believed. A calibration on a busy machine has been
/// seen to be off by half a per cent.
const FARTHEST: f64 = 1e-2;

impl Timeline {
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

    /// Nanoseconds since the Unix epoch.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what is beyond 64 bits is cut off there"
    )]
    pub(crate) fn unix_ns(&self, ticks: u64) -> i64 {
        let apart = ticks.wrapping_sub(self.ticks).cast_signed();
        self.unix_ns.saturating_add(self.ns(apart) as i64)
    }

    /// A number of ticks in nanoseconds.
    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_wall_clock_far_from_the_present_is_cut_off_at_64_bits() {
        let far = Duration::from_secs(1 << 40);
        let (past, future) = (SystemTime::UNIX_EPOCH - far, SystemTime::UNIX_EPOCH + far);
        for (first, last, end) in [
            (past, future, i64::MAX),
            (future, past, -i64::MAX),
            (future, future, i64::MAX),
        ] {
            let line = Timeline::through(WallAnchor::at(5, first), WallAnchor::at(10, last));
            assert_eq!(line.unix_ns(10), end);
            // Before and after it too.
            let around = [0, 1 << 62].map(|ticks| line.unix_ns(ticks));
            assert!(around[0] <= around[1]);
        }
    }

    #[test]
    fn a_line_goes_through_both_ends() {
        let first = WallAnchor::narrow();
        std::thread::sleep(Duration::from_millis(600));
        let last = WallAnchor::narrow();
        let line = Timeline::through(first, last);
        for anchor in [first, last] {
            let off = (line.unix_ns(anchor.ticks()) - anchor.unix_ns()).abs();
            assert!(off <= 2, "{off} ns off");
        }
    }
}
