//! The tails of the standard normal distribution.

/// Returns the probability that a standard normal value is at least as far from 0 as `z`: the complementary error
/// function of z / √2, by the approximation 7.1.26 of Abramowitz and Stegun (error below 1.5e-7).
pub(crate) fn two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let sum = polynomial
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    sum * (-x * x).exp()
}

/// Returns the distance from 0 that a standard normal value has or exceeds with the probability `p`; 5 at most, where the
/// approximation of the tail ends.
pub(crate) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `2 * pnorm(-1.96)`, and `qnorm(1 - p / 2)`.
    #[test]
    fn the_normal_approximation_has_the_tabulated_tail() {
        let near = |value: f64, expected: f64| {
            assert!((value - expected).abs() < 1e-4, "{value}, not {expected}");
        };
        near(two_sided(1.96), 0.049_995_79);
        near(two_sided(0.0), 1.0);
        near(quantile(0.05), 1.959_964);
        near(quantile(0.005), 2.807_034);
        near(quantile(1.0), 0.0);
    }
}
