//! The distribution of the rank sum of two samples that come from one distribution, without ties.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Distributions by the sizes of their samples.
type Distributions = BTreeMap<(usize, usize), Rc<[f64]>>;

thread_local! {
    /// The distributions that were counted. One comparison has thousands of samples of the same sizes.
    static COUNTED: RefCell<Distributions> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns, for each u, the probability that at most u of all pairs have the larger value on the left.
pub(super) fn distribution(left: usize, right: usize) -> Rc<[f64]> {
    COUNTED.with_borrow_mut(|counted| {
        let counted = counted.entry((left, right));
        Rc::clone(counted.or_insert_with(|| count(left, right).into()))
    })
}

fn count(left: usize, right: usize) -> Vec<f64> {
    let pairs = left * right;
    // How many choices of k of the values seen so far exceed u of the others: each value exceeds those of the other
    // sample before it. Of 40 values, there are at most 1.4e11.
    let mut ways = vec![vec![0.0_f64; pairs + 1]; left + 1];
    ways[0][0] = 1.0;
    for seen in 0..left + right {
        for k in (1..=left.min(seen + 1)).rev() {
            let exceeded = seen + 1 - k;
            let (fewer, same) = ways.split_at_mut(k);
            for u in exceeded..=pairs {
                same[0][u] += fewer[k - 1][u - exceeded];
            }
        }
    }
    let all: f64 = ways[left].iter().sum();
    let mut below = 0.0;
    let sums = ways[left].iter().map(|ways| {
        below += ways;
        below / all
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mann and Whitney (1947), table I: five against five.
    #[test]
    fn small_samples_have_the_tabulated_probabilities() {
        let of_five = distribution(5, 5);
        for (u, expected) in [(0, 0.004), (2, 0.016), (5, 0.075), (12, 0.5), (25, 1.0)] {
            assert!((of_five[u] - expected).abs() < 5e-4, "{u}: {}", of_five[u]);
        }
    }
}
