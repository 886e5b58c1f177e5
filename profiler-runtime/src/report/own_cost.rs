//! The cost of the profiler itself, as a summary shows it.

use super::row::Row;
use crate::clock::{clock, now};
use crate::diagnostics::printable;
use crate::own_cost;
use crate::scope::run_empty_scopes;
use crate::sync::RaceCell;

/// The cost of the profiler itself, as fractions from 0 to 1, except `background`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct OwnCost {
    /// The share of measuring in the time of the measured threads: of the wall time since the profiler was first used,
    /// or of the self times of all rows together if these are longer, because several threads measured at once. An
    /// estimate from the cost of a call (timed once) and of a GPU time (the median of one scope in 64, including the
    /// driver's part).
    pub measured_threads: f64,
    /// The processor time of the profiler's own threads, including the loggers and handlers that run on them, as a
    /// fraction of the wall time. Above 1 if several of them worked at once.
    pub background: f64,
    /// The estimated cost of one measured call in nanoseconds, without a GPU time and a log.
    pub call_ns: f64,
    /// The estimated cost of a GPU time on the measured thread in nanoseconds, including the driver's part: the median
    /// of the sampled scopes. Zero before the first sample.
    pub gpu_time_ns: f64,
}

/// The share of measuring from which the summary says how to lower it.
const MUCH: f64 = 0.05;

impl OwnCost {
    /// Returns the lines of a summary about the cost. If it is high, the second one names the most frequent of `rows`.
    pub(super) fn notes(&self, rows: &[Row]) -> Vec<String> {
        let of_gpu_time = if self.gpu_time_ns > 0.0 {
            format!(", {} a GPU time", short_time(self.gpu_time_ns))
        } else {
            String::new()
        };
        let mut notes = vec![format!(
            "the profiler itself: {} of the measured threads' time (about {} a call{of_gpu_time}), {} of a processor in its \
             own threads",
            percent(self.measured_threads),
            short_time(self.call_ns),
            percent(self.background)
        )];
        if self.measured_threads >= MUCH {
            notes.extend(self.remedy(rows));
        }
        notes
    }

    /// Returns a line that says how to lower a high cost. It names the row that contributes most to its larger part.
    fn remedy(&self, rows: &[Row]) -> Option<String> {
        let of_calls = |row: &Row| row.calls as f64 * self.call_ns;
        let of_gpu_times = |row: &Row| gpu_times(row) as f64 * self.gpu_time_ns;
        let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).sum::<f64>();
        let share = percent(self.measured_threads);
        if sum(&of_gpu_times) > sum(&of_calls) {
            let row = rows.iter().max_by_key(|row| gpu_times(row))?;
            let name = printable(&row.name);
            return Some(format!(
                "measuring takes {share} of that time, most of it for GPU times: `{name}` has {} of them, about {} each on \
                 the CPU; measure the function around it instead, or leave it out with PROFILER_FILTER=-{name}",
                gpu_times(row),
                short_time(self.gpu_time_ns)
            ));
        }
        let row = rows.iter().max_by_key(|row| row.calls)?;
        let name = printable(&row.name);
        Some(format!(
            "measuring takes {share} of that time because calls are many and short: `{name}` was called {} times for {} \
             each; measure the loop around it, or leave it out with PROFILER_FILTER=-{name}",
            row.calls,
            short_time(row.cpu.map_or(0.0, |cpu| cpu.mean_ns))
        ))
    }
}

/// Returns how many GPU times a row has.
fn gpu_times(row: &Row) -> u64 {
    row.cuda.map_or(0, |cuda| cuda.calls)
}

/// Formats a fraction as a percentage with three digits.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = match percent {
        ..0.9995 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{percent:.digits$} %")
}

/// Formats the time of a call.
fn short_time(ns: f64) -> String {
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6)];
    let (unit, in_ns) = units
        .into_iter()
        .find(|(_, in_ns)| ns < in_ns * 999.5)
        .unwrap_or(("s", 1e9));
    let value = ns.max(0.0) / in_ns;
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {unit}")
}

/// Returns the cost of an ordinary call in nanoseconds. Measured once, with a cell that belongs to no name.
fn cost_of_call() -> f64 {
    static COST: RaceCell<f64> = RaceCell::new();
    *COST.get_or_init(|| {
        const CALLS: u32 = 512;
        // The first round warms up the caches.
        let rounds = [(); 4].map(|()| {
            let start = now();
            run_empty_scopes(CALLS);
            now().saturating_sub(start)
        });
        let best = rounds.into_iter().min().unwrap_or_default();
        clock().nanoseconds(best as f64) / f64::from(CALLS)
    })
}

pub(super) fn of(rows: &[Row], wall_ns: f64) -> OwnCost {
    let calls: u64 = rows
        .iter()
        .map(|row| row.calls)
        .fold(0, u64::saturating_add);
    let on_gpu: u64 = rows.iter().map(gpu_times).fold(0, u64::saturating_add);
    let gpu_time_ns = own_cost::median_sample();
    let measured = calls as f64 * cost_of_call() + on_gpu as f64 * gpu_time_ns;
    let self_ns: f64 = rows
        .iter()
        .filter_map(|row| row.cpu)
        .map(|cpu| cpu.self_ns)
        .sum();
    OwnCost {
        measured_threads: share_of_threads(measured, wall_ns, self_ns),
        background: own_cost::background_ns() as f64 / wall_ns.max(1.0),
        call_ns: cost_of_call(),
        gpu_time_ns,
    }
}

/// Returns the share of measuring in the time of the measured threads.
///
/// Several threads may spend more on measuring than the wall time that passed: their time is at least what they spent.
fn share_of_threads(measuring_ns: f64, wall_ns: f64, self_ns: f64) -> f64 {
    measuring_ns / wall_ns.max(self_ns).max(measuring_ns).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Times;

    fn row(name: &str, calls: u64, mean_ns: f64) -> Row {
        let times = Times {
            mean_ns,
            ..Times::default()
        };
        Row {
            name: name.to_owned(),
            calls,
            cpu: Some(times),
            ..Row::default()
        }
    }

    #[test]
    fn the_cost_is_a_share_of_what_the_threads_had() {
        let shares = [
            // One thread that is idle most of the time.
            share_of_threads(10.0, 1000.0, 30.0),
            // Eight threads, each with a tenth of its time.
            share_of_threads(800.0, 1000.0, 8000.0),
            // Eight threads that do little else, at the top level.
            share_of_threads(8000.0, 1000.0, 300.0),
            share_of_threads(0.0, 0.0, 0.0),
        ];
        assert_eq!(
            shares.map(percent),
            ["1.00 %", "10.0 %", "100 %", "0.000 %"]
        );
    }

    #[test]
    fn a_low_cost_is_one_line() {
        let cost = OwnCost {
            measured_threads: 0.000_79,
            background: 0.0132,
            call_ns: 17.2,
            gpu_time_ns: 0.0,
        };
        let expected = "the profiler itself: 0.079 % of the measured threads' time (about 17 ns a call), 1.32 % of a processor in \
                        its own threads";
        assert_eq!(cost.notes(&[row("a", 5, 1e6)]), [expected]);
    }

    #[test]
    fn a_high_cost_names_the_most_frequent_calls_and_the_remedy() {
        let cost = OwnCost {
            measured_threads: 0.981,
            background: 0.0,
            call_ns: 17.2,
            gpu_time_ns: 0.0,
        };
        let rows = [row("app::run", 1, 1e9), row("app::add", 58_000_000, 1.3)];
        let notes = cost.notes(&rows);
        let expected = "measuring takes 98.1 % of that time because calls are many and short: `app::add` was called 58000000 \
                        times for 1.3 ns each; measure the loop around it, or leave it out with PROFILER_FILTER=-app::add";
        assert_eq!(notes[1..], [expected]);
        assert_eq!(cost.notes(&[]).len(), 1);
    }

    #[test]
    fn a_high_cost_of_gpu_times_names_the_function_that_has_most() {
        let cost = OwnCost {
            measured_threads: 0.2,
            background: 0.0,
            call_ns: 20.0,
            gpu_time_ns: 4_000.0,
        };
        let on_gpu = Row {
            cuda: Some(Times {
                calls: 900,
                ..Times::default()
            }),
            ..row("app::launch", 1_000, 11_000.0)
        };
        let notes = cost.notes(&[row("app::add", 2_000, 500.0), on_gpu]);
        assert!(
            notes[0].contains("(about 20 ns a call, 4.0 µs a GPU time)"),
            "{}",
            notes[0]
        );
        let expected = "measuring takes 20.0 % of that time, most of it for GPU times: `app::launch` has 900 of them, about \
                        4.0 µs each on the CPU; measure the function around it instead, or leave it out with \
                        PROFILER_FILTER=-app::launch";
        assert_eq!(notes[1..], [expected]);
    }

    #[test]
    fn shares_and_times_have_up_to_three_digits() {
        let shares = [0.0, 0.000_79, 0.0132, 0.981, 1.0].map(percent);
        assert_eq!(shares, ["0.000 %", "0.079 %", "1.32 %", "98.1 %", "100 %"]);
        let times = [-1.0, 1.34, 17.2, 999.4, 2_040.0, 5e7, 2e9].map(short_time);
        let expected = [
            "0.0 ns", "1.3 ns", "17 ns", "999 ns", "2.0 µs", "50 ms", "2.0 s",
        ];
        assert_eq!(times, expected);
    }
}
