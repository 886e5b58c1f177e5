//! Dates in UTC, so that a file says the same wherever it is written.

/// Formats a time since the Unix epoch as `2026-11-22 18:20 UTC`; `None` for a time that is not known.
#[must_use]
pub fn utc(unix_ns: i64) -> Option<String> {
    if unix_ns <= 0 {
        return None;
    }
    let minutes = unix_ns / 60_000_000_000;
    let (days, minute) = (minutes / 1_440, minutes % 1_440);
    let (year, month, day) = civil(days);
    let (hour, minute) = (minute / 60, minute % 60);
    Some(format!(
        "{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC"
    ))
}

/// Formats a time since the Unix epoch as `nvidia-smi` does, but in UTC: `2026/11/22 18:20:59.123`.
pub(super) fn to_the_millisecond(unix_ns: i64) -> String {
    let ms = unix_ns.div_euclid(1_000_000);
    let (days, ms) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, ms) = (ms / 1_000, ms % 1_000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    format!("{year}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// Returns the year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from a first of March, leap days are last in their years, and eras of 400 years are alike.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (59, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_795_371_600, "2026-11-22 18:20 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000).as_deref(), Some(expected));
        }
        assert_eq!(utc(0), None);
    }

    #[test]
    fn times_have_their_milliseconds() {
        for (unix_ns, expected) in [
            (1_795_371_659_123_999_999, "2026/11/22 18:20:59.123"),
            (951_782_399_999_000_000, "2000/02/28 23:59:59.999"),
            (0, "1970/01/01 00:00:00.000"),
        ] {
            assert_eq!(to_the_millisecond(unix_ns), expected);
        }
    }
}
