//! Samples: one for each round, so that those of two variants pair up.

use serde::{Deserialize, Serialize};

/// Nanoseconds per call, one for each round.
#[derive(Clone, Debug)]
pub struct Samples(pub Vec<f64>);

/// What the samples say: the middle, the middle half around it, and the least.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the samples are below.
    pub median: f64,
    /// A quarter of the samples is below.
    pub lower: f64,
    /// A quarter of the samples is above.
    pub upper: f64,
    /// The least: what the code takes when nothing else runs.
    pub min: f64,
}

impl Samples {
    /// What the samples say.
    pub fn spread(&self) -> Spread {
        let sorted = sorted(&self.0);
        Spread {
            median: quantile(&sorted, 0.5),
            lower: quantile(&sorted, 0.25),
            upper: quantile(&sorted, 0.75),
            min: quantile(&sorted, 0.0),
        }
    }

    /// What each of `calls` calls adds to `base`: medians of what each round differs by, which noise
    /// that lasts longer than a round does not touch; the least of the one less the least of the other.
    pub fn added_to(&self, base: &Self, calls: u32) -> Spread {
        let calls = f64::from(calls);
        let pairs = self.0.iter().zip(&base.0);
        let differences = Self(
            pairs
                .map(|(with, without)| (with - without) / calls)
                .collect(),
        );
        let min = (self.spread().min - base.spread().min) / calls;
        Spread {
            min,
            ..differences.spread()
        }
    }
}

/// The median of some numbers; not a number where there are none.
pub fn median(numbers: &[f64]) -> f64 {
    quantile(&sorted(numbers), 0.5)
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Between the two nearest numbers, in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let below = place as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn noise_that_lasts_for_rounds_does_not_count_as_added() {
        let base = Samples(vec![1.0, 1.0, 50.0, 60.0]);
        let with = Samples(vec![5.0, 5.0, 54.0, 64.0]);
        let added = with.added_to(&base, 2);
        assert!((added.median - 2.0).abs() < 1e-12);
        assert!((added.min - 2.0).abs() < 1e-12);
    }
}
