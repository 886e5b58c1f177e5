//! How many runs it takes.

use std::f64::consts::PI;

use super::FEWEST_RUNS;
use super::statistics::{Shift, least_p, quantile};
use super::verdict::CERTAIN;

/// More runs than this are not suggested.
pub(crate) const MOST_RUNS: usize = 999;
/// A change that is found in nine of ten cases is this many standard errors beyond what finds it in half of them: 1.28 by the
/// normal distribution, and some more because the width of the interval varies too.
const NINE_OF_TEN: f64 = 1.45;
/// The median absolute deviation of a normal distribution.
const DEVIATION: f64 = 0.674_5;

/// How much a figure varies from run to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// The standard deviation of a run, as a logarithm.
    pub(super) of_run: f64,
    /// The smallest difference that is reported.
    least: f64,
}

impl Noise {
    /// Derives the deviation from the width of the interval, in which every run has a part and an outlier has none.
    pub(super) fn of(shift: Shift, base_runs: usize, new_runs: usize, least: f64) -> Self {
        let (base, new) = (base_runs as f64, new_runs as f64);
        let half = (shift.high - shift.low) / 2.0;
        let error = half / half_width(base + new);
        Self {
            of_run: error / ((1.0 / base + 1.0 / new) * PI / 3.0).sqrt(),
            least,
        }
    }

    /// Returns how many median deviations an estimate may be off by luck: two for seven runs, fewer for more.
    pub(super) fn luck(runs: usize) -> f64 {
        2.0 * (7.0 / runs.max(1) as f64).sqrt()
    }

    /// Returns the standard error of a difference. The estimate of Hodges and Lehmann needs π/3 as many runs as the mean.
    fn error(self, runs: usize) -> f64 {
        self.of_run * (2.0 / runs as f64 * PI / 3.0).sqrt()
    }

    /// Returns about how many runs a side find a change of this size (a logarithm) in half of all cases; `None` if that is a
    /// thousand or more. `level` is the p-value that a single difference needs.
    pub(super) fn runs_to_find(self, size: f64, level: f64) -> Option<usize> {
        self.runs(size, level, 0.0)
    }

    /// Returns about how many runs a side find it in nine of ten cases.
    pub(super) fn runs_to_find_surely(self, size: f64, level: f64) -> Option<usize> {
        self.runs(size, level, NINE_OF_TEN)
    }

    fn runs(self, size: f64, level: f64, margin: f64) -> Option<usize> {
        let significant = quantile(level);
        (FEWEST_RUNS..=MOST_RUNS).find(|runs| {
            let error = self.error(*runs);
            let certain = CERTAIN.ln_1p() + half_width(2.0 * *runs as f64) * error;
            let luck = Self::luck(*runs) * DEVIATION * self.of_run;
            let found = certain.max(significant * error).max(luck).max(self.least);
            size > found + margin * error && least_p(*runs) <= level
        })
    }

    /// Returns about how many runs a side show that a difference of this size lies within `limit`.
    pub(super) fn runs_to_exclude(self, size: f64, limit: f64) -> Option<usize> {
        (FEWEST_RUNS..=MOST_RUNS)
            .find(|runs| size + half_width(2.0 * *runs as f64) * self.error(*runs) < limit)
    }
}

/// Returns half the width of an interval of 95 % in standard errors: the quantile of Student's distribution, to a percent.
fn half_width(values: f64) -> f64 {
    1.96 + 2.4 / (values - 2.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(of_run: f64) -> Noise {
        Noise {
            of_run,
            least: 0.03_f64.ln_1p(),
        }
    }

    /// The textbook number for the mean of normal values, two-sided at 5 % with a power of 90 %, is 21 (σ/δ)² a side. Here the
    /// interval must lie beyond 2 %, so δ is 2 % less.
    #[test]
    fn the_numbers_are_near_those_of_textbooks() {
        for (of_run, expected) in [(0.02, 10..=14), (0.04, 38..=54), (0.0001, 5..=5)] {
            let runs = noise(of_run).runs_to_find_surely(0.05_f64.ln_1p(), 0.05);
            assert!(
                runs.is_some_and(|runs| expected.contains(&runs)),
                "{of_run}: {runs:?}"
            );
        }
        assert_eq!(noise(0.3).runs_to_find_surely(0.05_f64.ln_1p(), 0.05), None);
    }

    #[test]
    fn many_functions_and_small_changes_need_more_runs() {
        let runs = |size: f64, level| noise(0.02).runs_to_find(size.ln_1p(), level);
        assert_eq!(runs(0.2, 0.05), Some(5));
        // Five runs cannot be significant among a hundred functions.
        assert_eq!(runs(0.2, 0.05 / 100.0), Some(8));
        assert!(runs(0.05, 0.05) > runs(0.1, 0.05));
        assert_eq!(runs(0.02, 0.05), None);
        assert_eq!(noise(0.02).runs_to_exclude(0.0, 0.03), Some(5));
        assert_eq!(noise(0.02).runs_to_exclude(0.02, 0.03), Some(34));
        assert_eq!(noise(0.02).runs_to_exclude(0.03, 0.03), None);
    }

    #[test]
    fn the_noise_is_that_of_the_interval() {
        // The interval of seven values a side is wider than that of twenty by more than the root of their number.
        let shift = |half: f64| Shift {
            estimate: 0.0,
            low: -half,
            high: half,
        };
        let near = |noise: Noise| assert!((noise.of_run - 0.02).abs() < 0.000_5, "{noise:?}");
        near(Noise::of(
            shift(2.16 * 0.02 * (2.0_f64 / 7.0 * PI / 3.0).sqrt()),
            7,
            7,
            0.03,
        ));
        near(Noise::of(
            shift(2.02 * 0.02 * (2.0_f64 / 20.0 * PI / 3.0).sqrt()),
            20,
            20,
            0.03,
        ));
    }
}
