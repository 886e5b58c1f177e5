//! Percentages that add up although each is rounded.

use super::row::Row;
use crate::in_order::InOrder as _;

/// Hundredths of a per cent in a whole.
const WHOLE: f64 = 10_000.0;

/// Sets the CPU percentages of all rows. `busy` returns the processor time of a row's calls including children. Returns
/// the sum of the self times; `None` if no row has CPU times.
pub fn share_cpu(rows: &mut [Row], busy: impl Fn(usize, &Row) -> f64) -> Option<f64> {
    let own: Vec<f64> = rows
        .iter()
        .map(|row| row.cpu.map_or(0.0, |cpu| cpu.self_ns))
        .collect();
    let sum = own.iter().sum();
    let mut has_cpu = false;
    for (index, (row, share)) in rows.iter_mut().zip(shares(&own)).enumerate() {
        let busy = busy(index, row);
        if let Some(cpu) = &mut row.cpu {
            has_cpu = true;
            cpu.self_percent = share;
            cpu.total_percent = share_of_total(busy, sum, share);
        }
    }
    has_cpu.then_some(sum)
}

/// Sets the GPU percentages of all rows. Returns the sum of the self times; `None` if no row has GPU times.
pub fn share_cuda(rows: &mut [Row]) -> Option<f64> {
    let own: Vec<f64> = rows
        .iter()
        .map(|row| row.cuda.map_or(0.0, |cuda| cuda.self_ns))
        .collect();
    let sum = own.iter().sum();
    let mut has_cuda = false;
    for (row, share) in rows.iter_mut().zip(shares(&own)) {
        if let Some(cuda) = &mut row.cuda {
            has_cuda = true;
            cuda.self_percent = share;
            cuda.total_percent = share_of_total(cuda.total_ns, sum, share);
        }
    }
    has_cuda.then_some(sum)
}

/// Returns each value as a percentage of their sum, with two digits. The printed percentages add up to 100.00: what
/// rounding down left over goes to the largest remainders. All are zero if the sum is zero.
fn shares(values: &[f64]) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    if sum <= 0.0 {
        return vec![0.0; values.len()];
    }
    let exact: Vec<f64> = values.iter().map(|value| value / sum * WHOLE).collect();
    let mut units: Vec<f64> = exact.iter().map(|share| share.floor()).collect();
    let missing = WHOLE - units.iter().sum::<f64>();
    let mut by_remainder: Vec<usize> = (0..values.len()).collect();
    let remainder = |index: usize| exact[index] - exact[index].floor();
    by_remainder.order_by(|left, right| remainder(*right).total_cmp(&remainder(*left)));
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
fn share_of_total(total: f64, sum: f64, self_share: f64) -> f64 {
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
