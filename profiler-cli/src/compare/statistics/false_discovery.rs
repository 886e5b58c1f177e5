//! The procedure of Benjamini and Hochberg, which bounds the share of false discoveries among all discoveries.

/// Returns, for each p-value, whether it is a discovery if at most the share `rate` of all discoveries may be false.
pub(crate) fn benjamini_hochberg(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let tests = sorted.len() as f64;
    let is_below = |(index, p): &(usize, &f64)| **p <= rate * (index + 1) as f64 / tests;
    let last = sorted.iter().enumerate().rfind(is_below);
    p_values
        .iter()
        .map(|p| last.is_some_and(|(_, limit)| p <= limit))
        .collect()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the values are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of Benjamini and Hochberg (1995), section 3.2: fifteen tests, four discoveries at 5 %.
    #[test]
    fn the_example_of_its_authors_has_four_discoveries() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = benjamini_hochberg(&p, 0.05);
        assert_eq!(found.iter().filter(|found| **found).count(), 4);
        assert!(found[..4].iter().all(|found| *found));
    }

    /// Only the largest of these is below its own limit, and takes the others along.
    #[test]
    fn a_value_above_its_own_limit_is_found_with_a_larger_one() {
        assert_eq!(benjamini_hochberg(&[0.04, 0.045, 0.049], 0.05), [true; 3]);
        assert_eq!(benjamini_hochberg(&[0.04, 0.045, 0.051], 0.05), [false; 3]);
        assert_eq!(benjamini_hochberg(&[], 0.05), [false; 0]);
    }

    proptest! {
        #[test]
        fn a_smaller_value_is_found_if_a_larger_one_is(p in prop::collection::vec(0.0..1.0, 1..30)) {
            let found = benjamini_hochberg(&p, 0.05);
            for (left, left_found) in p.iter().zip(&found) {
                for (right, right_found) in p.iter().zip(&found) {
                    prop_assert!(left > right || left_found >= right_found);
                }
                // Between no correction and Bonferroni's.
                prop_assert!(!left_found || *left <= 0.05);
                prop_assert!(*left_found || *left > 0.05 / p.len() as f64);
            }
        }
    }
}
