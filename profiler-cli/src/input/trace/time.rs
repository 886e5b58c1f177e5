//! Times of events: microseconds in the file, whole nanoseconds in the program.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// The largest time in microseconds, in the year 2255: 64 bits hold it in nanoseconds.
const MAX_MICROSECONDS: f64 = 9.0e15;

/// A time or a duration of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Time {
    #[default]
    Missing,
    /// In nanoseconds.
    Nanoseconds(i64),
    /// In microseconds, outside of what can be represented.
    TooLarge(f64),
}

impl Time {
    /// Rounds to nanoseconds. The whole microseconds are taken first: below 2⁴³ µs, where a float has at least ten binary
    /// digits after the point, all nanoseconds are then right.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the limit is checked before"
    )]
    fn of_microseconds(microseconds: f64) -> Self {
        if !microseconds.is_finite() || microseconds.abs() > MAX_MICROSECONDS {
            return Self::TooLarge(microseconds);
        }
        let whole = microseconds.trunc();
        let rest = ((microseconds - whole) * 1000.0).round();
        Self::Nanoseconds(whole as i64 * 1000 + rest as i64)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Microseconds)
    }
}

struct Microseconds;

impl Visitor<'_> for Microseconds {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of microseconds")
    }

    fn visit_unit<E>(self) -> Result<Time, E> {
        Ok(Time::Missing)
    }

    fn visit_u64<E>(self, microseconds: u64) -> Result<Time, E> {
        Ok(Time::of_microseconds(microseconds as f64))
    }

    fn visit_i64<E>(self, microseconds: i64) -> Result<Time, E> {
        Ok(Time::of_microseconds(microseconds as f64))
    }

    fn visit_f64<E>(self, microseconds: f64) -> Result<Time, E> {
        Ok(Time::of_microseconds(microseconds))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        let microseconds = text.trim().parse();
        microseconds
            .map(Time::of_microseconds)
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
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
        assert_eq!(time("0.001"), Time::Nanoseconds(1));
        assert_eq!(time("-1.5"), Time::Nanoseconds(-1500));
        assert_eq!(time("7"), Time::Nanoseconds(7000));
        assert_eq!(time("\" 2.5\""), Time::Nanoseconds(2500));
        assert_eq!(time("null"), Time::Missing);
    }

    #[test]
    fn times_that_no_clock_shows_are_marked() {
        assert_eq!(time("1e19"), Time::TooLarge(1e19));
        assert_eq!(
            time("18446744073709551615"),
            Time::TooLarge(18_446_744_073_709_551_615.0)
        );
        assert_eq!(
            time("-9000000000000001"),
            Time::TooLarge(-9.000_000_000_000_001e15)
        );
        assert!(matches!(time("\"NaN\""), Time::TooLarge(nan) if nan.is_nan()));
        assert_eq!(time("\"-inf\""), Time::TooLarge(f64::NEG_INFINITY));
        assert!(serde_json::from_str::<Time>("[]").is_err());
        assert!(serde_json::from_str::<Time>("\"soon\"").is_err());
    }
}
