//! The verdict on one figure.

use super::statistics::Shift;

/// The smallest difference that is reported.
pub(super) const LEAST: f64 = 0.03;
/// The whole interval of a reported difference lies beyond this. If that were 3 % too, a difference of 5 % would take twice as
/// many runs.
pub(super) const CERTAIN: f64 = 0.02;

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

    /// Returns `true` for slower and faster.
    pub(crate) const fn is_difference(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
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

/// How large differences must be, as logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// A smaller estimate is not reported: it may be luck.
    pub(crate) threshold: f64,
    /// The figure is the same if its whole interval is smaller.
    pub(crate) margin: f64,
}

/// Returns the verdict on a difference; `is_significant` is the result of the test.
///
/// A difference must be significant, its estimate beyond the threshold, and its whole interval beyond [`CERTAIN`].
pub(crate) fn judge(shift: Shift, limits: Limits, is_significant: bool) -> Verdict {
    let certain = CERTAIN.ln_1p();
    let is_clear = if shift.estimate > 0.0 {
        shift.low > certain
    } else {
        shift.high < -certain
    };
    if is_significant && is_clear && shift.estimate.abs() > limits.threshold {
        if shift.estimate > 0.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    } else if -limits.margin < shift.low && shift.high < limits.margin {
        Verdict::Same
    } else {
        Verdict::Unclear
    }
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
        let limits = Limits {
            threshold: 0.05,
            margin: 0.06,
        };
        let judge = |shift, is_significant| judge(shift, limits, is_significant);
        assert_eq!(judge(shift(0.08, 0.1, 0.12), true), Verdict::Slower);
        assert_eq!(judge(shift(-0.12, -0.1, -0.08), true), Verdict::Faster);
        assert_eq!(judge(shift(0.08, 0.1, 0.12), false), Verdict::Unclear);
        assert_eq!(judge(shift(0.015, 0.1, 0.2), true), Verdict::Unclear);
        assert_eq!(judge(shift(0.03, 0.04, 0.07), true), Verdict::Unclear);
        assert_eq!(judge(shift(0.03, 0.035, 0.04), true), Verdict::Same);
        assert_eq!(judge(shift(-0.01, 0.0, 0.01), false), Verdict::Same);
    }
}
