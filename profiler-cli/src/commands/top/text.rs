//! Numbers and names as the screen shows them.

use std::time::Duration;

pub(super) use profiler_host::diagnostics::printable;
use profiler_report::HistoryPoint;
use profiler_report::internal::format_time;

use super::line::Order;
pub(super) use super::styled::width;

/// Formats a time with three digits: `1.23 ms`.
pub(super) fn time(ns: f64) -> String {
    format_time(ns.max(0.0))
}

/// Formats a number with its noun: `1 call`, `12.3k calls`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

/// Formats a number: `12.3k`.
pub(super) fn count(number: f64) -> String {
    const UNITS: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
    let number = number.max(0.0);
    for (unit, size) in UNITS {
        if number < 999.5 * size {
            let number = number / size;
            return if unit.is_empty() && number.fract() < 1e-9 {
                format!("{number:.0}")
            } else {
                format!("{}{unit}", three_digits(number))
            };
        }
    }
    format!("{number:.0e}")
}

pub(super) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 {
        "<0.1".to_owned()
    } else if share < 9.9995 {
        format!("{:.1}", 100.0 * share)
    } else {
        count(100.0 * share)
    }
}

fn three_digits(number: f64) -> String {
    if number < 9.995 {
        format!("{number:.2}")
    } else if number < 99.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

/// Formats an age: seconds matter less the older something is.
pub(super) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", age.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The parts of a character's height, from nothing to all of it.
pub(super) const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns how much of each column's time was spent in the name itself, with a history drawn in `columns` columns from the
/// beginning of the run to `end_ns`; empty if there is none.
pub(super) fn heights(
    history: &[HistoryPoint],
    end_ns: f64,
    columns: usize,
    order: Order,
) -> Vec<f64> {
    let step = end_ns / columns.max(1) as f64;
    if history.is_empty() || step.is_nan() || step <= 0.0 {
        return Vec::new();
    }
    let mut heights = vec![0.0_f64; columns];
    for point in history {
        let value = if order.is_of_cuda() {
            point.cuda_self_ns
        } else {
            point.cpu_self_ns
        };
        let (start, length) = (point.start_ns as f64, (point.duration_ns as f64).max(1.0));
        for (column, height) in heights.iter_mut().enumerate() {
            let (from, to) = (column as f64 * step, (column + 1) as f64 * step);
            let within = to.min(start + length) - from.max(start);
            *height += value * (within / length).max(0.0);
        }
    }
    heights
}

/// Draws columns as bars in a number of lines, relative to the highest column. A column that is not 0 is seen.
pub(super) fn bars(heights: &[f64], lines: usize) -> Vec<String> {
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let line = |line: usize| {
        let below = lines - 1 - line;
        let bar = |height: &f64| {
            if highest <= 0.0 || *height <= 0.0 {
                return BARS[0];
            }
            let all = eighths(*height / highest, lines).max(1);
            BARS[all.saturating_sub(8 * below).min(8)]
        };
        heights.iter().map(bar).collect()
    };
    (0..lines).map(line).collect()
}

/// Returns how many eighths of a line a part of `lines` lines is, rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to eight times the lines of a screen"
)]
pub(super) fn eighths(part: f64, lines: usize) -> usize {
    let all = 8.0 * lines as f64;
    (all * part).ceil().clamp(0.0, all) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (9.996, "10.0 ns"),
            (123_456.0, "123 µs"),
            (999_600.0, "1.00 ms"),
            (1.5e9, "1.50 s"),
            (5.4e12, "90.0 min"),
            (108e12, "30.0 h"),
            (1e15, "11.6 days"),
        ] {
            assert_eq!(time(ns), text);
        }
        for (number, text) in [(0.0, "0"), (7.0, "7"), (0.25, "0.25"), (12_345.0, "12.3k")] {
            assert_eq!(count(number), text);
        }
        for (share, text) in [
            (0.0, "0.0"),
            (0.0001, "<0.1"),
            (0.5, "50.0"),
            (12.0, "1.20k"),
        ] {
            assert_eq!(percent(share), text);
        }
        assert_eq!(age(Duration::from_millis(400)), "0.4 s");
        assert_eq!(age(Duration::from_secs(7_199)), "119 min");
    }

    #[test]
    fn names_have_no_control_character() {
        assert_eq!(printable("a\u{1b}[2J\u{202e}b"), "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn a_history_is_drawn_over_the_whole_run() {
        let point = |start, duration, cpu| HistoryPoint::from((start, duration, 1, cpu, 0, 0.0));
        let history = [point(0, 100, 100.0), point(200, 200, 100.0)];
        let drawn = |history: &[HistoryPoint], end_ns, columns, order| {
            bars(&heights(history, end_ns, columns, order), 1).concat()
        };
        assert_eq!(drawn(&history, 400.0, 4, Order::Cpu), "█ ▄▄");
        // Half of the first point is in each of two columns.
        assert_eq!(drawn(&history, 400.0, 8, Order::Cpu), "██  ▄▄▄▄");
        assert_eq!(drawn(&history, 400.0, 4, Order::Cuda), "    ");
        assert_eq!(drawn(&[], 400.0, 4, Order::Cpu), "");
        assert_eq!(drawn(&history, 0.0, 4, Order::Cpu), "");
    }

    #[test]
    fn bars_may_be_several_lines_high() {
        assert_eq!(bars(&[16.0, 9.0, 8.0, 0.1, 0.0], 2), ["█▁   ", "███▁ "]);
    }
}
