//! Two samples of a figure, one for each side, and what a verdict needs to know of them.

use super::power::Noise;
use super::row::Change;
use super::statistics::{Shift, hodges_lehmann, mad, mann_whitney};
use super::verdict::{LEAST, Limits};

/// Three values a side have no interval of 95 %.
const FEWEST_WITH_INTERVAL: usize = 4;
/// A clock that cannot tell figures apart which differ by less than this fraction says of none that they are the same.
const COARSE: f64 = 0.25;

/// Two samples, compared as logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    pub(super) shift: Shift,
    pub(super) p: f64,
    pub(super) limits: Limits,
    pub(super) noise: Noise,
    /// The number of runs on the side with fewer.
    pub(super) runs: usize,
}

impl Tested {
    /// Compares two samples. Differences below the fraction `resolution` are those of the clock.
    pub(super) fn new(base: &[f64], new: &[f64], resolution: f64) -> Self {
        let shift = hodges_lehmann(base, new);
        let spread = mad(base).max(mad(new));
        let least = LEAST.max(resolution).ln_1p();
        let runs = base.len().min(new.len());
        Self {
            shift,
            p: mann_whitney(base, new),
            limits: Limits {
                threshold: least.max(spread * Noise::luck(runs)),
                margin: if resolution > COARSE {
                    0.0
                } else {
                    least.max(2.0 * spread)
                },
            },
            noise: Noise::of(shift, base.len(), new.len(), least),
            runs,
        }
    }

    /// Returns the comparison with another estimate. The interval grows if it does not contain it.
    pub(super) fn with_estimate(self, estimate: f64) -> Self {
        let shift = Shift {
            estimate,
            low: self.shift.low.min(estimate),
            high: self.shift.high.max(estimate),
        };
        Self { shift, ..self }
    }

    pub(super) fn change(&self) -> Change {
        let has_interval = self.runs >= FEWEST_WITH_INTERVAL;
        Change {
            estimate: self.shift.estimate.exp_m1(),
            low: has_interval.then(|| self.shift.low.exp_m1()),
            high: has_interval.then(|| self.shift.high.exp_m1()),
            p: self.p,
        }
    }
}
