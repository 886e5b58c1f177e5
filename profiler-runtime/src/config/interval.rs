//! Times between two writes of the summary, or two samples of the GPU.

use std::time::Duration;

/// The shortest interval.
pub(crate) const SHORTEST: Duration = Duration::from_millis(100);
/// The longest interval: a day.
pub(crate) const LONGEST: Duration = Duration::from_secs(86_400);

/// The units, in seconds. A unit comes before those that it ends with.
const UNITS: [(&str, f64); 5] = [
    ("ms", 1e-3),
    ("min", 60.0),
    ("h", 3_600.0),
    ("s", 1.0),
    ("", 1.0),
];

/// Parses a number of seconds, or a number with a unit.
pub(super) fn parse_interval(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let with_unit = |(unit, seconds)| Some((text.strip_suffix(unit)?, seconds));
    let (number, seconds): (&str, f64) = UNITS.into_iter().find_map(with_unit)?;
    // `inf`, `nan` and `1e3` are numbers for the standard library.
    let is_digit = |char: char| char.is_ascii_digit() || char == '.';
    let number = number.trim_end();
    let number: f64 = number
        .parse()
        .ok()
        .filter(|_| number.chars().all(is_digit))?;
    let interval = Duration::try_from_secs_f64(number * seconds).ok()?;
    (SHORTEST..=LONGEST).contains(&interval).then_some(interval)
}

/// Parses an interval, or a word that means none, which is zero.
pub(super) fn parse_interval_or_off(text: &str) -> Option<Duration> {
    let is_off = ["off", "0", "no", "false"].contains(&text.trim().to_ascii_lowercase().as_str());
    if is_off {
        return Some(Duration::ZERO);
    }
    parse_interval(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_in_seconds_or_has_a_unit() {
        for (text, milliseconds) in [
            ("1", 1_000),
            (" 0.5 ", 500),
            ("100ms", 100),
            ("2s", 2_000),
            ("1.5 S", 1_500),
            ("1min", 60_000),
            ("24h", 86_400_000),
        ] {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(parse_interval(text), Some(expected), "{text}");
        }
        for wrong in [
            "", "0", "99ms", "86401", "25h", "-1", "1e3", "inf", "nan", "1m", "s", "1 2", "one",
        ] {
            assert_eq!(parse_interval(wrong), None, "{wrong}");
        }
    }
    #[test]
    fn an_interval_may_be_off() {
        let zero = Some(Duration::ZERO);
        assert_eq!(parse_interval_or_off(" OFF "), zero);
        assert_eq!(parse_interval_or_off("0"), zero);
        assert_eq!(parse_interval_or_off("2s"), Some(Duration::from_secs(2)));
        assert_eq!(parse_interval_or_off("10ms"), None);
    }
}
