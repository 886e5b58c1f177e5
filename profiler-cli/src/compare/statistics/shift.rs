//! How far one sample is shifted against another one: the estimate of Hodges and Lehmann, with its interval.

use super::rank_sums::distribution;
use super::spread::median;

/// A shift, and the interval that contains the true one in at least 95 of 100 cases, if the samples are large enough for
/// such an interval: four values each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shift {
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Returns the median of the differences of all pairs, `right` less `left`. The interval is that of the rank sum test
/// (without ties): it contains the shifts that the test does not reject.
pub(crate) fn hodges_lehmann(left: &[f64], right: &[f64]) -> Shift {
    let mut differences: Vec<f64> = left
        .iter()
        .flat_map(|left| right.iter().map(move |right| right - left))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let outside = outside(left.len(), right.len());
    let at = |index: usize| differences.get(index).copied().unwrap_or_default();
    Shift {
        estimate: median(&differences),
        low: at(outside),
        high: at(differences.len().saturating_sub(outside + 1)),
    }
}

/// The largest number of values for which the exact distribution is counted; its normal approximation follows.
const MAX_EXACT: usize = 40;

/// Returns how many of the smallest differences lie outside the interval: the largest U that the two-sided test rejects at
/// 5 %, or 0 if it rejects none.
fn outside(left: usize, right: usize) -> usize {
    let pairs = left * right;
    if left + right > MAX_EXACT {
        let (pairs, runs) = (pairs as f64, (left + right) as f64);
        let limit = pairs / 2.0 - 1.96 * (pairs * (runs + 1.0) / 12.0).sqrt() - 0.5;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and less than the number of pairs"
        )]
        return limit.max(0.0).floor() as usize;
    }
    let rejected = distribution(left, right).partition_point(|below| *below <= 0.025);
    rejected.saturating_sub(1)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tables of the Mann-Whitney test: the largest U that is significant at 5 %, two-sided.
    #[test]
    fn the_limits_are_those_of_the_tables() {
        for (left, right, critical) in [
            (4, 4, 0),
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (10, 10, 23),
            (5, 8, 6),
            (20, 20, 127),
        ] {
            assert_eq!(outside(left, right), critical, "{left}, {right}");
            assert_eq!(outside(right, left), critical, "{right}, {left}");
        }
        // There is no interval of 95 %.
        assert_eq!(outside(3, 3), 0);
    }

    /// Hollander and Wolfe, example 4.1 (the permeability of membranes). R: `wilcox.test(x, y, conf.int = TRUE)` gives
    /// the estimate 0.305 and, for 95 %, the interval from -0.15 to 0.76.
    #[test]
    fn a_textbook_example_has_its_estimate_and_interval() {
        let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let y = [1.15, 0.88, 0.90, 0.74, 1.21];
        let shift = hodges_lehmann(&y, &x);
        let expected = [0.305, -0.15, 0.76];
        for (value, expected) in [shift.estimate, shift.low, shift.high]
            .into_iter()
            .zip(expected)
        {
            assert!((value - expected).abs() < 1e-9, "{shift:?}");
        }
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_estimate_and_moves_with_the_sample(
            left in prop::collection::vec(-1.0..1.0, 1..9),
            right in prop::collection::vec(-1.0..1.0, 1..9),
        ) {
            let shift = hodges_lehmann(&left, &right);
            prop_assert!(shift.low <= shift.estimate && shift.estimate <= shift.high);
            let moved: Vec<f64> = right.iter().map(|value| value + 10.0).collect();
            prop_assert!((hodges_lehmann(&left, &moved).low - shift.low - 10.0).abs() < 1e-9);
            let back = hodges_lehmann(&right, &left);
            prop_assert!((back.estimate + shift.estimate).abs() < 1e-12);
            prop_assert!((back.low + shift.high).abs() < 1e-12);
        }
    }
}
