//! Numbers of the data: short, and exact enough to be shown.

use crate::text::units;

/// Formats a number with five significant digits: two more than the page shows.
pub(super) fn number(value: f64) -> String {
    rounded(value, 5).to_string()
}

/// Formats a time with as many digits as show it as the table without script does: rounding twice must not change a
/// digit, nor may the number lie halfway between two.
pub(super) fn time(ns: f64) -> String {
    let text = units::time(ns);
    let shows_it = |number: &f64| {
        let around = [1.0 - 1e-12, 1.0 + 1e-12].map(|factor| units::time(number * factor));
        around.iter().all(|shown| *shown == text)
    };
    let numbers = [5, 7, 9].map(|digits| rounded(ns, digits)).into_iter();
    // Halfway, a browser rounds up.
    let beside = [1.0 - 1e-9, 1.0 + 1e-9].map(|factor| rounded(ns * factor, 12));
    let shortest = numbers.chain(beside).find(shows_it);
    let number = shortest.unwrap_or(ns);
    if number.is_finite() {
        number.to_string()
    } else {
        "0".to_owned()
    }
}

/// Rounds a number to significant digits. A number that JSON does not have becomes zero.
fn rounded(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let exponent = f64::from(digits - 1) - value.abs().log10().floor();
    let scale = 10_f64.powf(exponent.abs());
    if exponent >= 0.0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn numbers_keep_five_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (f64::NAN, "0"),
            (12.345_678, "12.346"),
            (0.001_234_567, "0.0012346"),
            (2_291_234_567.0, "2291200000"),
            (-5.5, "-5.5"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_time_is_shown_alike_with_fewer_digits() {
        assert_eq!(time(1_234_567.0), "1234600");
        // To five digits, it would be 2.395 µs, and shown as 2.40 µs.
        assert_eq!(units::time(2_394.96), "2.39 µs");
        assert_eq!(time(2_394.96), "2394.96");
        assert_eq!(time(f64::INFINITY), "0");
    }
    #[test]
    fn a_time_halfway_between_two_is_moved_to_the_one_that_is_shown() {
        for (halfway, shown, moves) in [
            (198_500.0, "198 µs", Ordering::Less),
            (199_500.0, "200 µs", Ordering::Greater),
        ] {
            assert_eq!(units::time(halfway), shown);
            let moved: f64 = time(halfway).parse().expect("a number");
            assert_eq!(moved.partial_cmp(&halfway), Some(moves));
            assert_eq!(units::time(moved), shown);
        }
    }
}
