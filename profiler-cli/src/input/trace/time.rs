//! Times of events: microseconds in the file, whole nanoseconds in the program.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

/// The largest time in microseconds, in the year 2255: 64 bits hold it in nanoseconds.
const MAX_MICROSECONDS: i64 = 9_000_000_000_000_000;

/// A time or a duration of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Time {
    #[default]
    Missing,
    /// In nanoseconds.
    Nanoseconds(i64),
    /// Outside of what can be represented.
    TooLarge,
}

impl Time {
    /// Reads a number with decimals. A float would do for most files; but those of PyTorch 2.3 count microseconds from 1970,
    /// and floats of that size are a quarter of a microsecond apart.
    fn of_text(text: &str) -> Option<Self> {
        let (sign, digits) = text
            .strip_prefix('-')
            .map_or((1, text), |digits| (-1, digits));
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let are_digits = is_number(whole) && is_number(rest) && !rest.is_empty();
        if !are_digits || !(1..=16).contains(&whole.len()) {
            return text.parse().ok().map(Self::of_microseconds);
        }
        let microseconds: i64 = whole.parse().ok()?;
        if microseconds > MAX_MICROSECONDS {
            return Some(Self::TooLarge);
        }
        let digit = |at: usize| {
            rest.as_bytes()
                .get(at)
                .map_or(0, |digit| i64::from(digit - b'0'))
        };
        let rest = digit(0) * 100 + digit(1) * 10 + digit(2) + i64::from(digit(3) >= 5);
        Some(Self::Nanoseconds(sign * (microseconds * 1000 + rest)))
    }

    /// Rounds to nanoseconds.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the limit is checked before"
    )]
    fn of_microseconds(microseconds: f64) -> Self {
        if !microseconds.is_finite() || microseconds.abs() > MAX_MICROSECONDS as f64 {
            return Self::TooLarge;
        }
        let whole = microseconds.trunc();
        let rest = ((microseconds - whole) * 1000.0).round();
        Self::Nanoseconds(whole as i64 * 1000 + rest as i64)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        let text = value.get();
        if text == "null" {
            return Ok(Self::Missing);
        }
        let number = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let number = number.map_or(text, str::trim);
        // The text may be long: the error says where it is.
        let invalid = || D::Error::custom("expected a number of microseconds");
        Self::of_text(number).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(json: &str) -> Time {
        serde_json::from_str(json).expect("a time")
    }

    #[test]
    fn microseconds_with_three_decimals_are_exact_nanoseconds() {
        assert_eq!(
            time("4515236462950.948"),
            Time::Nanoseconds(4_515_236_462_950_948)
        );
        assert_eq!(
            time("8796093022207.999"),
            Time::Nanoseconds(8_796_093_022_207_999)
        );
        assert_eq!(
            time("1712195495519796.281"),
            Time::Nanoseconds(1_712_195_495_519_796_281)
        );
        assert_eq!(time("0.001"), Time::Nanoseconds(1));
        assert_eq!(time("1.0004999"), Time::Nanoseconds(1000));
        assert_eq!(time("-0.9996"), Time::Nanoseconds(-1000));
        assert_eq!(time("1.5e1"), Time::Nanoseconds(15_000));
        assert_eq!(time("-1.5"), Time::Nanoseconds(-1500));
        assert_eq!(time("7"), Time::Nanoseconds(7000));
        assert_eq!(time("\" 2.5\""), Time::Nanoseconds(2500));
        assert_eq!(time("null"), Time::Missing);
    }

    #[test]
    fn times_that_no_clock_shows_are_marked() {
        assert_eq!(time("1e19"), Time::TooLarge);
        assert_eq!(time("18446744073709551615"), Time::TooLarge);
        assert_eq!(time("-9000000000000001"), Time::TooLarge);
        assert_eq!(time("\"NaN\""), Time::TooLarge);
        assert_eq!(time("\"-inf\""), Time::TooLarge);
        assert!(serde_json::from_str::<Time>("[]").is_err());
        assert!(serde_json::from_str::<Time>("\"soon\"").is_err());
    }
}
