//! The movement that all functions of a run have in common: the machine was busy, the processor ran at another clock.
//!
//! On a shared machine this is the larger part of the noise: it makes every function of a run slower, and says nothing about
//! any of them. Where it is a change of the program, it is a finding. So it is tested by itself, and decides whether a function
//! is judged by its own change or by its difference from what most others do.

use super::statistics::median;

/// With fewer functions, one that really changed would shift what they have in common.
const FEWEST: usize = 5;

/// Returns the common movement of each run, as a logarithm, or `None` if there are too few functions.
///
/// `functions` has a value for each function and run, as logarithms. The movement of a run is the median of how far its
/// values lie from the middle of their functions, so less than half of the functions can change without an effect on it.
pub(crate) fn movements(functions: &[Vec<f64>]) -> Option<Vec<f64>> {
    if functions.len() < FEWEST {
        return None;
    }
    let runs = functions.iter().map(Vec::len).min()?;
    let middles: Vec<f64> = functions.iter().map(|values| median(values)).collect();
    let movement = |run: usize| {
        let pairs = functions.iter().zip(&middles);
        let deviations: Vec<f64> = pairs.map(|(values, middle)| values[run] - middle).collect();
        median(&deviations)
    };
    Some((0..runs).map(movement).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_functions_have_no_movement_in_common() {
        assert_eq!(movements(&vec![vec![0.0, 1.0]; 4]), None);
        assert_eq!(movements(&vec![vec![0.0, 1.0]; 5]), Some(vec![-0.5, 0.5]));
    }

    proptest! {
        #[test]
        fn a_run_that_is_slower_as_a_whole_is_found_although_a_few_functions_changed(
            speeds in prop::collection::vec(0.0..10.0, 7..12),
            slow in prop::collection::vec(-0.5..0.5, 8),
            changed in 0_usize..3,
        ) {
            let functions: Vec<Vec<f64>> = speeds.iter().enumerate().map(|(index, speed)| {
                let change = |run: usize| if index < changed && run >= 4 { 0.3 } else { 0.0 };
                slow.iter().enumerate().map(|(run, slow)| speed + slow + change(run)).collect()
            }).collect();
            let found = movements(&functions).expect("enough functions");
            // The level is that of the medians: only differences between runs matter.
            for run in 1..slow.len() {
                let difference: f64 = (found[run] - found[0]) - (slow[run] - slow[0]);
                prop_assert!(difference.abs() < 1e-9, "{}: {}", run, difference);
            }
        }
    }
}
