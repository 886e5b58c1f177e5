//! The rank sum test of Mann, Whitney and Wilcoxon.

use super::normal::two_sided;
use super::rank_sums::distribution;

/// Up to this many values of both samples together, the distribution is counted; above, it is close to normal.
const MAX_EXACT: usize = 40;

/// Returns the two-sided p-value of the test that two samples come from one distribution.
///
/// All divisions of the values into two groups are counted, with the ties that the values have; samples of more than 40
/// values together use the normal approximation. Returns 1 if a sample is empty.
pub(crate) fn mann_whitney(left: &[f64], right: &[f64]) -> f64 {
    if left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let ranks = doubled_ranks(left, right);
    let sum: usize = ranks[..left.len()].iter().sum();
    if ranks.len() > MAX_EXACT {
        approximate(&ranks, left.len(), sum)
    } else if are_tied(&ranks) {
        exact(&ranks, left.len(), sum)
    } else {
        without_ties(left.len(), right.len(), sum)
    }
}

fn are_tied(ranks: &[usize]) -> bool {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Returns the p-value of a doubled rank sum where no values are tied.
fn without_ties(left: usize, right: usize, sum: usize) -> f64 {
    let exceeded = sum / 2 - left * (left + 1) / 2;
    let fewer = exceeded.min(left * right - exceeded);
    (2.0 * distribution(left, right)[fewer]).min(1.0)
}

/// Returns the smallest p-value that two samples of `runs` values each can have.
pub(crate) fn least_p(runs: usize) -> f64 {
    // One of the ways to choose the sample, and its mirror image.
    (1..=runs).fold(2.0, |p, k| p * k as f64 / (runs + k) as f64)
}

/// Returns twice the rank of each value, which is a whole number also for ties: those of `left`, then those of `right`.
fn doubled_ranks(left: &[f64], right: &[f64]) -> Vec<usize> {
    // Adding zero makes +0 of -0, with which it is tied.
    let values: Vec<f64> = left.iter().chain(right).map(|value| value + 0.0).collect();
    let rank = |value: &f64| {
        let below = values
            .iter()
            .filter(|other| other.total_cmp(value).is_lt())
            .count();
        let equal = values
            .iter()
            .filter(|other| other.total_cmp(value).is_eq())
            .count();
        2 * below + equal + 1
    };
    values.iter().map(rank).collect()
}

/// Returns the mean of the sum of `chosen` of the ranks, doubled like them: that of all doubled ranks is one more than their
/// number.
fn doubled_mean(ranks: &[usize], chosen: usize) -> usize {
    chosen * (ranks.len() + 1)
}

/// Returns the share of all choices of `chosen` ranks whose sum is at least as far from the mean as `sum`.
fn exact(ranks: &[usize], chosen: usize, sum: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    // How many choices of k of the ranks seen so far have the sum s. Of 40 values, there are at most 1.4e11.
    let mut ways = vec![vec![0.0_f64; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for k in (1..=chosen).rev() {
            let (fewer, same) = ways.split_at_mut(k);
            for s in *rank..=most {
                same[0][s] += fewer[k - 1][s - rank];
            }
        }
    }
    let mean = doubled_mean(ranks, chosen);
    let observed = sum.abs_diff(mean);
    let (mut extreme, mut all) = (0.0, 0.0);
    for (s, ways) in ways[chosen].iter().enumerate() {
        all += ways;
        if s.abs_diff(mean) >= observed {
            extreme += ways;
        }
    }
    extreme / all
}

/// Returns the p-value by the normal approximation, corrected for ties and for continuity.
fn approximate(ranks: &[usize], chosen: usize, sum: usize) -> f64 {
    let all = ranks.len() as f64;
    let (left, right) = (chosen as f64, all - chosen as f64);
    // Values with one rank are tied; n tied values contribute n³ - n, which is n² - 1 for each.
    let ties: f64 = ranks
        .iter()
        .map(|rank| ranks.iter().filter(|other| *other == rank).count() as f64)
        .map(|tied| tied * tied - 1.0)
        .sum();
    let variance = left * right / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = sum.abs_diff(doubled_mean(ranks, chosen)) as f64 / 2.0;
    let z = (distance - 0.5).max(0.0) / variance.sqrt();
    two_sided(z)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6, "{value}, not {expected}");
    }

    /// The number of choices with U of at most 0, 1, 2 … is tabulated by Mann and Whitney (1947).
    #[test]
    fn values_without_ties_have_the_tabulated_probabilities() {
        // Five against five: 252 choices. U = 2 has 1 + 1 + 2 choices on each side.
        let left = [1.0, 2.0, 3.0, 4.0, 7.0];
        let right = [5.0, 6.0, 8.0, 9.0, 10.0];
        assert_near(mann_whitney(&left, &right), 2.0 * 4.0 / 252.0);
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_near(mann_whitney(&low, &high), 2.0 / 252.0);
        assert_near(mann_whitney(&high, &low), 2.0 / 252.0);
    }

    /// `SciPy`: `mannwhitneyu([19, 22, 16, 29, 24], [20, 11, 17, 12], method="exact").pvalue`, as in its documentation.
    #[test]
    fn samples_of_different_sizes_are_compared() {
        let males = [19.0, 22.0, 16.0, 29.0, 24.0];
        let females = [20.0, 11.0, 17.0, 12.0];
        assert_near(mann_whitney(&males, &females), 0.111_111_111);
    }

    /// Counted by hand: of the six choices of two of 1, 2, 2, 3, those of the sums 3 and 5 (each in two ways) and 4 (in
    /// two ways, the mean).
    #[test]
    fn ties_share_their_ranks() {
        assert_near(mann_whitney(&[1.0, 2.0], &[2.0, 3.0]), 4.0 / 6.0);
        assert_near(mann_whitney(&[1.0, 3.0], &[2.0, 2.0]), 1.0);
        assert_near(mann_whitney(&[5.0; 7], &[5.0; 7]), 1.0);
        assert_near(mann_whitney(&[], &[1.0]), 1.0);
    }

    #[test]
    fn the_least_p_is_that_of_samples_that_do_not_overlap() {
        for runs in 1..9 {
            let low: Vec<f64> = (0..runs).map(|value| value as f64).collect();
            let high: Vec<f64> = low.iter().map(|value| value + 100.0).collect();
            assert_near(least_p(runs), mann_whitney(&low, &high));
        }
        assert_near(least_p(7), 2.0 / 3432.0);
    }

    proptest! {
        #[test]
        fn the_approximation_is_near_the_exact_value(
            left in prop::collection::vec(0_u8..50, 15..20),
            right in prop::collection::vec(0_u8..50, 15..20),
        ) {
            let samples = [left, right].map(|sample| sample.into_iter().map(f64::from).collect::<Vec<_>>());
            let ranks = doubled_ranks(&samples[0], &samples[1]);
            let chosen = samples[0].len();
            let sum = ranks[..chosen].iter().sum();
            let difference = exact(&ranks, chosen, sum) - approximate(&ranks, chosen, sum);
            prop_assert!(difference.abs() < 0.02, "{}", difference);
        }

        #[test]
        fn values_without_ties_need_no_count_of_their_own(
            left in prop::collection::vec(0.0..1.0, 1..9),
            right in prop::collection::vec(1.0..2.0, 1..9),
        ) {
            // The values of the two samples overlap, and are distinct.
            let right: Vec<f64> = right.iter().map(|value| value - 0.7).collect();
            let ranks = doubled_ranks(&left, &right);
            prop_assume!(!are_tied(&ranks));
            let sum = ranks[..left.len()].iter().sum();
            let difference = exact(&ranks, left.len(), sum) - mann_whitney(&left, &right);
            prop_assert!(difference.abs() < 1e-12, "{}", difference);
        }

        #[test]
        fn only_the_order_of_the_values_matters(
            left in prop::collection::vec(0.0..1.0, 1..8),
            right in prop::collection::vec(0.0..1.0, 1..8),
        ) {
            let p = mann_whitney(&left, &right);
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert_eq!(p, mann_whitney(&right, &left));
            let raised = |sample: &[f64]| sample.iter().map(|value| value.exp()).collect::<Vec<_>>();
            prop_assert_eq!(p, mann_whitney(&raised(&left), &raised(&right)));
        }
    }
}
