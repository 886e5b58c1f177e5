//! The verdict on one figure.

use super::statistics::{Shift, least_p};

/// The answer for one figure of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It is larger: slower, or more memory.
    Slower,
    /// It is smaller.
    Faster,
    /// If there is a difference, it is below the threshold.
    Same,
    /// The runs differ too much among themselves to tell.
    Unclear,
    /// The sides ran under different conditions.
    NotComparable,
    /// There are too few runs for a verdict.
    None,
}

impl Verdict {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::NotComparable => "not comparable",
            Self::None => "no verdict",
        }
    }

    /// Returns the place among other verdicts in a list: what calls for action comes first.
    pub(crate) const fn order(self) -> u8 {
        match self {
            Self::Slower => 0,
            Self::Faster => 1,
            Self::Unclear => 2,
            Self::NotComparable => 3,
            Self::None => 4,
            Self::Same => 5,
        }
    }
}

/// More runs than this are not suggested.
const MOST_RUNS: f64 = 99.0;

/// Returns the verdict on a difference: `shift` and `threshold` are logarithms, `is_significant` is the result of the
/// test.
///
/// A difference must be significant and its estimate beyond the threshold, and the whole interval must lie beyond
/// `least`, the smallest difference that matters.
pub(crate) fn judge(shift: Shift, threshold: f64, least: f64, is_significant: bool) -> Verdict {
    let is_clear = if shift.estimate > 0.0 {
        shift.low > least
    } else {
        shift.high < -least
    };
    if is_significant && is_clear && shift.estimate.abs() > threshold {
        if shift.estimate > 0.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    } else if -threshold < shift.low && shift.high < threshold {
        Verdict::Same
    } else {
        Verdict::Unclear
    }
}

/// Returns about how many runs a side would give a verdict, if the runs vary as they did; `None` if that is a hundred or
/// more. `level` is the p-value that a single difference needs.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number below a hundred"
)]
pub(crate) fn runs_needed(runs: usize, shift: Shift, threshold: f64, level: f64) -> Option<usize> {
    let half = (shift.high - shift.low) / 2.0;
    let size = shift.estimate.abs();
    // The interval narrows with the square root of the number of runs, until it lies on one side of the threshold.
    let distance = (size - threshold).abs();
    let needed = (runs as f64 * (half / distance).powi(2)).ceil();
    if !needed.is_finite() || needed > MOST_RUNS {
        return None;
    }
    let mut needed = (needed as usize).max(runs + 1);
    while size > threshold && least_p(needed) > level {
        needed += 1;
    }
    Some(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(low: f64, estimate: f64, high: f64) -> Shift {
        Shift {
            estimate,
            low,
            high,
        }
    }

    #[test]
    fn a_difference_must_be_significant_large_and_certain() {
        let judge = |shift, is_significant| judge(shift, 0.05, 0.03, is_significant);
        assert_eq!(judge(shift(0.08, 0.1, 0.12), true), Verdict::Slower);
        assert_eq!(judge(shift(-0.12, -0.1, -0.08), true), Verdict::Faster);
        assert_eq!(judge(shift(0.08, 0.1, 0.12), false), Verdict::Unclear);
        assert_eq!(judge(shift(0.01, 0.1, 0.2), true), Verdict::Unclear);
        assert_eq!(judge(shift(0.03, 0.04, 0.06), true), Verdict::Unclear);
        assert_eq!(judge(shift(0.03, 0.035, 0.04), true), Verdict::Same);
        assert_eq!(judge(shift(-0.01, 0.0, 0.01), false), Verdict::Same);
    }

    #[test]
    fn more_runs_narrow_the_interval() {
        let wide = shift(-0.04, 0.0, 0.04);
        assert_eq!(runs_needed(7, wide, 0.03, 0.05), Some(13));
        // The interval is narrow enough, but seven runs cannot be significant among a hundred functions.
        let clear = shift(0.09, 0.1, 0.11);
        assert_eq!(runs_needed(5, clear, 0.03, 0.05 / 100.0), Some(8));
        assert_eq!(runs_needed(7, shift(-0.04, 0.03, 0.1), 0.03, 0.05), None);
    }
}
