//! Statistics of values.

/// Returns the quantile for a share of the values, or NaN if there are none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into the values"
    )]
    let at = (share * last as f64).round() as usize;
    sorted[at.min(last)]
}

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

pub(crate) fn least(values: &[f64]) -> f64 {
    quantile(values, 0.0)
}

pub(crate) fn most(values: &[f64]) -> f64 {
    quantile(values, 1.0)
}

/// Returns the differences of the values of `left` to their counterparts.
pub(crate) fn differences(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::{differences, least, median, most, quantile};

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values = [4.0, 1.0, 3.0, 2.0, 9.0];
        let seen = [least(&values), median(&values), most(&values)];
        assert!(
            seen.iter()
                .zip([1.0, 3.0, 9.0])
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
        assert!(quantile(&[], 0.5).is_nan());
        assert!((median(&differences(&[5.0, 7.0], &[5.0, 5.0])) - 2.0).abs() < 1e-12);
    }
}
