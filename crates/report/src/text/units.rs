//! Times, percentages and numbers of bytes with three significant digits and a unit of their own in each cell.

/// Units, the largest first: their size, from which value on they are used, and their name.
type Units = [(f64, f64, &'static str)];

/// The units of times in nanoseconds; the page's script has the same. Above a second they follow one another less evenly:
/// each is used up to a number of three digits that people still read as it is, such as 999 s and 99.9 min.
const TIMES: [(f64, f64, &str); 7] = [
    (86_400e9, 359_820e9, "days"),
    (3_600e9, 5_997e9, "h"),
    (60e9, 999.5e9, "min"),
    (1e9, 999.5e6, "s"),
    (1e6, 999.5e3, "ms"),
    (1e3, 999.5, "µs"),
    (1.0, 0.0, "ns"),
];

const BYTES: [(f64, f64, &str); 4] = [
    (1_073_741_824.0, 1_073_217_536.0, "GiB"),
    (1_048_576.0, 1_048_064.0, "MiB"),
    (1024.0, 1023.5, "KiB"),
    (1.0, 0.0, "B"),
];

/// Formats a time in nanoseconds: `812 ns`, `51.6 µs`, `2.29 s`, `30.0 h`, `4.17 days`.
pub fn time(ns: f64) -> String {
    in_units(ns, &TIMES)
}

/// Formats a percentage, with the two decimals that shares are rounded to.
pub(crate) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// Formats a number of bytes: `12 B`, `-1.50 KiB`, `3.00 GiB`.
pub(crate) fn bytes(bytes: i64) -> String {
    if bytes.unsigned_abs() < 1024 {
        return format!("{bytes} B");
    }
    mean_bytes(bytes as f64)
}

/// Formats a number of bytes that need not be whole, such as a mean: `12.5 B`.
pub fn mean_bytes(bytes: f64) -> String {
    in_units(bytes, &BYTES)
}

/// Formats a value in the largest unit that is used for it.
fn in_units(value: f64, units: &Units) -> String {
    let used = units.iter().find(|(_, from, _)| value.abs() >= *from);
    let (size, _, name) = used.or(units.last()).copied().unwrap_or((1.0, 0.0, ""));
    if value == 0.0 {
        return format!("0 {name}");
    }
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
            (999.4e9, "999 s"),
            (999.6e9, "16.7 min"),
            (4_321e9, "72.0 min"),
            (5_996e9, "99.9 min"),
            (6_000e9, "1.67 h"),
            (108_000e9, "30.0 h"),
            (359_900e9, "4.17 days"),
            (100.0 * 86_400e9, "100 days"),
            (-108_000e9, "-30.0 h"),
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

    #[test]
    fn the_page_has_the_same_units() {
        let script = include_str!("../page/scripts/format.js");
        let (_, list) = script.split_once("const TIME_UNITS = [").expect("units");
        let (list, _) = list.split_once("\n];").expect("their end");
        let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
        let units: Vec<(f64, f64, &str)> = lines
            .map(|line| {
                let mut parts = line.trim_matches(&['[', ']', ','][..]).split(", ");
                let mut part = || parts.next().expect("three parts");
                let [size, from] = [part(), part()].map(|number| number.parse().expect("a number"));
                (size, from, part().trim_matches('\''))
            })
            .collect();
        assert_eq!(units, TIMES);
    }

    proptest! {
        #[test]
        fn a_time_keeps_three_digits(ns in 1.0_f64..1e18) {
            let text = time(ns);
            let (digits, unit) = text.split_once(' ').unwrap();
            prop_assert!(digits.chars().filter(char::is_ascii_digit).count() >= 3, "{}", text);
            let (size, _, _) = TIMES.into_iter().find(|(_, _, name)| *name == unit).unwrap();
            prop_assert!(digits.chars().filter(char::is_ascii_digit).count() <= 5, "{}", text);
            let read: f64 = digits.parse().unwrap();
            prop_assert!((read * size / ns - 1.0).abs() <= 0.0051, "{} for {}", text, ns);
        }
    }
}
