//! Times, percentages and numbers of bytes with three significant digits and a unit of their own in each cell.

/// Formats a time in nanoseconds: `812 ns`, `51.6 µs`, `2.29 s`.
pub(crate) fn time(ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    in_units(ns, UNITS, 1e3)
}

/// Formats a percentage, with the two decimals that shares are rounded to.
pub(crate) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// Formats a number of bytes: `12 B`, `-1.50 KiB`, `3.00 GiB`.
pub(crate) fn bytes(bytes: i64) -> String {
    const UNITS: [(f64, &str); 4] = [
        (1_073_741_824.0, "GiB"),
        (1_048_576.0, "MiB"),
        (1024.0, "KiB"),
        (1.0, "B"),
    ];
    if bytes.unsigned_abs() < 1024 {
        return format!("{bytes} B");
    }
    in_units(bytes as f64, UNITS, 1024.0)
}

/// Formats a value in the largest unit in which it is at least one after rounding.
fn in_units(value: f64, units: [(f64, &str); 4], step: f64) -> String {
    let [.., smallest] = units;
    if value == 0.0 {
        return format!("0 {}", smallest.1);
    }
    // The smaller unit would show `step`, or four digits.
    let starts = 1.0 - 0.5 / step;
    let unit = units
        .into_iter()
        .find(|(size, _)| value.abs() / size >= starts);
    let (size, name) = unit.unwrap_or(smallest);
    format!("{} {name}", number(value / size))
}

/// Formats a number with three significant digits; with more if it has more before the point, and with two decimals if
/// it is below one.
pub(crate) fn number(value: f64) -> String {
    // Above these bounds, rounding would give one digit more.
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_have_the_largest_unit_that_leaves_a_digit_before_the_point() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.43, "0.43 ns"),
            (9.994, "9.99 ns"),
            (9.996, "10.0 ns"),
            (99.96, "100 ns"),
            (812.0, "812 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (51_640.0, "51.6 µs"),
            (999_600.0, "1.00 ms"),
            (12_345_000.0, "12.3 ms"),
            (2_291_000_000.0, "2.29 s"),
            (4_321_000_000_000.0, "4321 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn bytes_are_written_in_their_largest_unit() {
        for (count, text) in [
            (0, "0 B"),
            (-1023, "-1023 B"),
            (1536, "1.50 KiB"),
            (-(5 << 20), "-5.00 MiB"),
            (3 << 30, "3.00 GiB"),
            (i64::MIN, "-8589934592 GiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    proptest! {
        #[test]
        fn a_time_keeps_three_digits(ns in 1.0_f64..1e15) {
            let text = time(ns);
            let (digits, unit) = text.split_once(' ').unwrap();
            prop_assert!(digits.chars().filter(char::is_ascii_digit).count() >= 3, "{}", text);
            let size = match unit { "s" => 1e9, "ms" => 1e6, "µs" => 1e3, _ => 1.0 };
            let read: f64 = digits.parse().unwrap();
            prop_assert!((read * size / ns - 1.0).abs() <= 0.0051, "{} for {}", text, ns);
        }
    }
}
