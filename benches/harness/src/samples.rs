//! Samples: one per round, so that those of two variants can be paired.

use crate::Variant;

/// Nanoseconds per call, one value per round.
#[derive(Clone, Debug)]
pub struct Samples(pub Vec<f64>);

/// Statistics of samples: the median, the quartiles, the 2nd percentile and the minimum.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The first quartile.
    pub lower: f64,
    /// The third quartile.
    pub upper: f64,
    /// The 2nd percentile: of many short batches, the time of the code when nothing else runs. Unlike the minimum, it does
    /// not depend on a single batch.
    pub low: f64,
    /// The minimum.
    pub min: f64,
}

impl Samples {
    /// Returns the statistics of the samples.
    pub fn spread(&self) -> Spread {
        let sorted = sorted(&self.0);
        Spread {
            median: quantile(&sorted, 0.5),
            lower: quantile(&sorted, 0.25),
            upper: quantile(&sorted, 0.75),
            low: quantile(&sorted, 0.02),
            min: quantile(&sorted, 0.0),
        }
    }

    /// Returns what each of `calls` calls adds to `base`: the median of the differences per round,
    /// which noise that lasts longer than a round does not affect, and the differences of the
    /// 2nd percentiles and of the minima.
    pub fn added_to(&self, base: &Self, calls: u32) -> Spread {
        let added = |with: f64, without: f64| (with - without) / f64::from(calls);
        let pairs = self.0.iter().zip(&base.0);
        let differences = Self(
            pairs
                .map(|(&with, &without)| added(with, without))
                .collect(),
        );
        let (with, without) = (self.spread(), base.spread());
        Spread {
            low: added(with.low, without.low),
            min: added(with.min, without.min),
            ..differences.spread()
        }
    }
}

impl Spread {
    /// Returns the 2nd percentile, the median and the minimum as multiples of another's.
    pub fn over(&self, unit: &Self) -> [f64; 3] {
        let parts = [
            |one: &Self| one.low,
            |one: &Self| one.median,
            |one: &Self| one.min,
        ];
        parts.map(|part| part(self) / part(unit))
    }
}

/// Returns the nanoseconds that each measured call of the variant `name` adds to the calls of `base`, of the samples of all
/// variants.
///
/// # Panics
///
/// Panics if there is no such variant.
pub fn added(variants: &[Variant], samples: &[Samples], name: &str, base: &str) -> Spread {
    let named = |name| variants.iter().position(|variant| variant.name == name);
    let [with, without] = [name, base].map(|name| named(name).expect("it is a variant"));
    let calls = variants[with].measured.max(1);
    samples[with].added_to(&samples[without], calls)
}

/// Returns the median of some numbers, or NaN if there are none.
pub fn median(numbers: &[f64]) -> f64 {
    quantile(&sorted(numbers), 0.5)
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Interpolates linearly between the two nearest numbers.
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
    fn single_batches_that_were_too_fast_or_slow_do_not_move_the_second_percentile() {
        let mut batches = vec![20.0; 400];
        batches[7] = 3.0;
        batches[80..390].fill(90.0);
        let spread = Samples(batches).spread();
        assert!((spread.low - 20.0).abs() < 1e-12);
        assert!((spread.min - 3.0).abs() < 1e-12);
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
