//! Formats times, percentages and numbers of bytes as torch does.

/// Formats a time in nanoseconds as torch does: `1.234s`, `12.345ms`, `12.345us`.
pub(in crate::report) fn time(ns: f64) -> String {
    // Each unit starts where the smaller one would have four digits before the point.
    if ns >= 999_999_500.0 {
        format!("{:.3}s", ns / 1e9)
    } else if ns >= 999_999.5 {
        format!("{:.3}ms", ns / 1e6)
    } else {
        format!("{:.3}us", ns / 1e3)
    }
}

/// Formats a percentage, with the two digits that shares are rounded to.
pub(in crate::report) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// Formats a number of bytes: `12 B`, `-1.50 KiB`, `3.00 GiB`.
pub(in crate::report) fn bytes(bytes: i64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes.unsigned_abs() >= *unit);
    match unit {
        Some((unit, name)) => format!("{:.2} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_torch_does() {
        for (ns, text) in [
            (0.0, "0.000us"),
            (0.4, "0.000us"),
            (12_345.0, "12.345us"),
            (999_999.4, "999.999us"),
            (999_999.6, "1.000ms"),
            (12_345_000.0, "12.345ms"),
            (999_999_600.0, "1.000s"),
            (1_234_000_000.0, "1.234s"),
            (4_321_000_000_000.0, "4321.000s"),
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
            (i64::MIN, "-8589934592.00 GiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
