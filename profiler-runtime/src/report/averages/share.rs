//! Percentages that add up although each is rounded.

/// Hundredths of a per cent in a whole.
const WHOLE: f64 = 10_000.0;

/// Returns each value as a percentage of their sum, with two digits. The printed percentages add up to 100.00: what
/// rounding down left over goes to the largest remainders. All are zero if the sum is zero.
pub(super) fn shares(values: &[f64]) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    if sum <= 0.0 {
        return vec![0.0; values.len()];
    }
    let exact: Vec<f64> = values.iter().map(|value| value / sum * WHOLE).collect();
    let mut units: Vec<f64> = exact.iter().map(|share| share.floor()).collect();
    let missing = WHOLE - units.iter().sum::<f64>();
    let mut by_remainder: Vec<usize> = (0..values.len()).collect();
    let remainder = |index: usize| exact[index] - exact[index].floor();
    by_remainder.sort_by(|left, right| remainder(*right).total_cmp(&remainder(*left)));
    let mut left = missing.round();
    for index in by_remainder {
        if left < 1.0 {
            break;
        }
        units[index] += 1.0;
        left -= 1.0;
    }
    units.into_iter().map(|units| units / 100.0).collect()
}

/// Returns a total as a percentage of the sum of all self times: at most 100, and at least the row's own self
/// percentage, whichever way that was rounded.
pub(super) fn share_of_total(total: f64, sum: f64, self_share: f64) -> f64 {
    if sum <= 0.0 {
        return 0.0;
    }
    let share = (total / sum * WHOLE).round().min(WHOLE) / 100.0;
    share.max(self_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_thirds_are_a_whole() {
        assert_eq!(shares(&[1.0, 1.0, 1.0]), [33.34, 33.33, 33.33]);
    }

    #[test]
    fn the_largest_remainder_is_rounded_up() {
        assert_eq!(shares(&[1.0, 2.0, 4.0]), [14.29, 28.57, 57.14]);
    }

    #[test]
    fn nothing_has_no_shares() {
        assert_eq!(shares(&[0.0, 0.0]), [0.0, 0.0]);
        assert!(shares(&[]).is_empty());
    }

    #[test]
    fn no_total_is_more_than_all_or_less_than_its_self_time() {
        let totals = [(3.0, 2.0, 50.0), (1.0, 3.0, 33.34), (2.0, 3.0, 33.34)];
        let share = |(total, sum, own)| share_of_total(total, sum, own);
        let shares: Vec<f64> = totals.into_iter().map(share).collect();
        assert_eq!(shares, [100.0, 33.34, 66.67]);
    }
}
