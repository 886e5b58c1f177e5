//! The cost of the profiler itself, as a summary shows it.

use profiler_host::diagnostics::printable;

use super::row::Row;
use super::times::Times;

/// The cost of the profiler itself, as fractions from 0 to 1, except `background` and times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct OwnCost {
    /// The share of measuring in the time of the measured threads: of the wall time since the profiler was first used,
    /// or of the self times of all rows together if these are longer, because several threads measured at once. An
    /// estimate from the cost of a call (timed once on the fast path, sampled on the slow one) and of a GPU time (the median
    /// of one scope in 64, including the driver's part).
    pub measured_threads: f64,
    /// The share of measuring in the processor time of the process since its start, estimated likewise: a busy machine does
    /// not change it. Zero if the system does not report that time, and in files of versions that did not record it.
    pub processor: f64,
    /// The processor time of the profiler's own threads, including the loggers and handlers that run on them, as a
    /// fraction of the wall time. Above 1 if several of them worked at once.
    pub background: f64,
    /// The estimated cost of one measured call in nanoseconds, without a GPU time: the mean of all calls. With thread times,
    /// callers or ranges, a call takes the slow path, which costs up to a hundred times as much; the slow path is
    /// sampled, and what pushing a log entry or a record of a session takes is timed once.
    pub call_ns: f64,
    /// The part of `call_ns` that a thread time costs, in nanoseconds. Zero if thread times were not turned on, and in files
    /// of versions that did not record it.
    pub thread_time_ns: f64,
    /// The estimated cost of a GPU time on the measured thread in nanoseconds, including the driver's part: the median
    /// of the sampled scopes. Zero before the first sample.
    pub gpu_time_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
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
            "the profiler itself: {} of the measured threads' time (about {} a call{of_gpu_time}), and {} of one core in \
             its background threads",
            percent(self.measured_threads),
            short_time(self.call_ns),
            percent(self.background)
        )];
        if self.measured_threads >= MUCH {
            notes.extend(self.remedy(rows));
        } else if self.processor >= MUCH {
            notes.extend(self.remedy_of_short_calls(rows));
        }
        notes
    }

    /// Returns a line that says how to lower a high cost. It names the row that contributes most to its larger part.
    fn remedy(&self, rows: &[Row]) -> Option<String> {
        let share = format!(
            "measuring takes {} of the measured threads' time",
            percent(self.measured_threads)
        );
        if self.is_mostly_of_gpu_times(rows) {
            let row = rows.iter().max_by_key(|row| gpu_times(row))?;
            let name = printable(&row.name);
            return Some(format!(
                "{share}, most of it for GPU times: `{name}` has {} of them, about {} each on the CPU; \
                 measure the function around it instead, or leave it out with PROFILER_FILTER=-{name}",
                gpu_times(row),
                short_time(self.gpu_time_ns)
            ));
        }
        if self.is_mostly_of_thread_times(rows) {
            return Some(format!(
                "{share}, most of it to read the threads' own clocks, about {} a call: turn thread times off \
                 (PROFILER_THREAD_TIME=0), or measure fewer calls",
                short_time(self.thread_time_ns)
            ));
        }
        let row = rows.iter().max_by_key(|row| row.calls)?;
        Some(self.remedy_of_calls(row, &format!("{share} because")))
    }

    /// Returns a line that says how to lower a cost that is high only in processor time: other programs, or waits, took the
    /// rest of the threads' time. `None` unless most calls of the most frequent row take less than measuring them.
    fn remedy_of_short_calls(&self, rows: &[Row]) -> Option<String> {
        let row = rows.iter().max_by_key(|row| row.calls)?;
        let is_of_short_calls = !self.is_mostly_of_gpu_times(rows) && self.is_short(row);
        // No share: a share of the processor time would have another whole than the line above.
        is_of_short_calls.then(|| {
            self.remedy_of_calls(
                row,
                "measuring takes much of the program's processor time because",
            )
        })
    }

    fn is_mostly_of_gpu_times(&self, rows: &[Row]) -> bool {
        let of_gpu_times = |row: &Row| gpu_times(row) as f64 * self.gpu_time_ns;
        rows.iter().map(of_gpu_times).sum::<f64>() > self.of_calls(rows)
    }

    fn is_mostly_of_thread_times(&self, rows: &[Row]) -> bool {
        let has_thread_time = |row: &&Row| row.thread_time_total_ns.is_some();
        let calls = rows
            .iter()
            .filter(has_thread_time)
            .map(|row| row.calls as f64);
        2.0 * calls.sum::<f64>() * self.thread_time_ns > self.of_calls(rows)
    }

    fn of_calls(&self, rows: &[Row]) -> f64 {
        rows.iter().map(|row| row.calls as f64 * self.call_ns).sum()
    }

    /// Returns `true` if most calls of a row are known to take less than measuring one, or to be too short for the clock.
    ///
    /// The median decides, not the mean: on a busy machine a few calls in a million are preempted, each for as long as a
    /// million others take.
    fn is_short(&self, row: &Row) -> bool {
        row.too_short || median(row).is_some_and(|median_ns| median_ns < self.call_ns)
    }

    /// `because` says what measuring takes, and ends with that word.
    fn remedy_of_calls(&self, row: &Row, because: &str) -> String {
        let (name, calls) = (printable(&row.name), row.calls);
        let length = match median(row) {
            Some(median_ns) if median_ns < self.call_ns => {
                let cost = short_time(self.call_ns);
                format!("most of them for less than the {cost} that measuring one takes")
            }
            _ if row.too_short => "most of them too short to be timed one by one".to_owned(),
            Some(median_ns) => format!("half of them for at most {}", short_time(median_ns)),
            None => {
                let mean_ns = row.cpu.map_or(0.0, |cpu| cpu.mean_ns);
                format!("on average for {}", short_time(mean_ns))
            }
        };
        format!(
            "{because} calls are many and short: `{name}` was called {calls} times, {length}; measure \
             the loop around it, or leave it out with PROFILER_FILTER=-{name}"
        )
    }
}

/// Returns the median of a row's calls on the CPU, if it is known: files need not have the percentiles, which are zero then.
fn median(row: &Row) -> Option<f64> {
    let has_percentiles = |times: &Times| row.cpu_histogram.is_some() || times.p99_ns > 0.0;
    row.cpu.filter(has_percentiles).map(|times| times.p50_ns)
}

/// Returns how many GPU times a row has.
pub fn gpu_times(row: &Row) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    /// Returns a row of a file without percentiles.
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

    /// Returns a row of which one call in 2,000 was preempted for so long that it takes most of the time.
    fn preempted(name: &str, p50_ns: f64) -> Row {
        let times = Times {
            p50_ns,
            p99_ns: 2.0 * p50_ns,
            ..Times::default()
        };
        let mut row = row(name, 2_000_000, 0.0);
        row.cpu = Some(Times {
            mean_ns: p50_ns + 4e6 / 2_000.0,
            ..times
        });
        row
    }

    /// Returns the cost of a program whose threads waited for a processor nearly all the time.
    fn on_a_busy_machine() -> OwnCost {
        OwnCost {
            measured_threads: 0.03,
            processor: 0.709,
            background: 0.0,
            call_ns: 89.0,
            thread_time_ns: 0.0,
            gpu_time_ns: 0.0,
            non_exhaustive: (),
        }
    }

    #[test]
    fn a_low_cost_is_one_line() {
        let cost = OwnCost {
            measured_threads: 0.000_79,
            processor: 0.001,
            background: 0.0132,
            call_ns: 17.2,
            thread_time_ns: 0.0,
            gpu_time_ns: 0.0,
            non_exhaustive: (),
        };
        let expected = "the profiler itself: 0.079 % of the measured threads' time (about 17 ns a call), and 1.32 % of one core in \
                        its background threads";
        assert_eq!(cost.notes(&[row("a", 5, 1e6)]), [expected]);
    }

    #[test]
    fn a_high_cost_names_the_most_frequent_calls_and_the_remedy() {
        let cost = OwnCost {
            measured_threads: 0.981,
            processor: 0.99,
            background: 0.0,
            call_ns: 17.2,
            thread_time_ns: 0.0,
            gpu_time_ns: 0.0,
            non_exhaustive: (),
        };
        let mut rows = [row("app::run", 1, 1e9), row("app::add", 58_000_000, 1.3)];
        let advice = |rows: &[Row], length: &str| {
            let expected = format!(
                "measuring takes 98.1 % of the measured threads' time because calls are many and short: `app::add` was called 58000000 times, \
                 {length}; measure the loop around it, or leave it out with PROFILER_FILTER=-app::add"
            );
            assert_eq!(cost.notes(rows)[1..], [expected]);
        };
        advice(&rows, "on average for 1.3 ns");
        rows[1].cpu = Some(Times {
            p50_ns: 120.0,
            p99_ns: 200.0,
            ..Times::default()
        });
        advice(&rows, "half of them for at most 120 ns");
        rows[1].too_short = true;
        advice(&rows, "most of them too short to be timed one by one");
        // The clock did not advance in any of the calls.
        rows[1].cpu = Some(Times::default());
        rows[1].cpu_histogram = Some(Histogram::default());
        advice(
            &rows,
            "most of them for less than the 17 ns that measuring one takes",
        );
        assert_eq!(cost.notes(&[]).len(), 1);
    }

    #[test]
    fn calls_that_are_preempted_now_and_then_are_named_if_most_cost_less_than_measuring_them() {
        let notes = on_a_busy_machine().notes(&[preempted("app::add", 17.0)]);
        let expected = "measuring takes much of the program's processor time because calls are many and short: `app::add` was \
                        called 2000000 times, most of them for less than the 89 ns that measuring one takes; measure the \
                        loop around it, or leave it out with PROFILER_FILTER=-app::add";
        assert_eq!(notes[1..], [expected]);
    }

    #[test]
    fn a_cost_in_processor_time_alone_is_no_reason_to_leave_out_longer_calls() {
        let busy = on_a_busy_machine();
        assert_eq!(busy.notes(&[preempted("app::add", 90.0)]).len(), 1);
        let without_percentiles = row("app::add", 2_000_000, 17.0);
        assert_eq!(busy.notes(&[without_percentiles]).len(), 1);
        let idle = OwnCost {
            processor: 0.04,
            ..busy
        };
        assert_eq!(idle.notes(&[preempted("app::add", 17.0)]).len(), 1);
    }

    #[test]
    fn a_high_cost_of_gpu_times_names_the_function_that_has_most() {
        let cost = OwnCost {
            measured_threads: 0.2,
            processor: 0.3,
            background: 0.0,
            call_ns: 20.0,
            thread_time_ns: 0.0,
            gpu_time_ns: 4_000.0,
            non_exhaustive: (),
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
        let expected = "measuring takes 20.0 % of the measured threads' time, most of it for GPU times: `app::launch` has 900 of them, about \
                        4.0 µs each on the CPU; measure the function around it instead, or leave it out with \
                        PROFILER_FILTER=-app::launch";
        assert_eq!(notes[1..], [expected]);
    }

    #[test]
    fn a_high_cost_of_thread_times_names_what_turns_them_off() {
        let cost = OwnCost {
            measured_threads: 0.9,
            call_ns: 1_300.0,
            thread_time_ns: 1_150.0,
            ..OwnCost::default()
        };
        let timed = Row {
            thread_time_total_ns: Some(1e6),
            ..row("app::add", 2_000_000, 20.0)
        };
        let expected = "measuring takes 90.0 % of the measured threads' time, most of it to read the threads' own clocks, \
                        about 1.1 µs a call: turn thread times off (PROFILER_THREAD_TIME=0), or measure fewer calls";
        assert_eq!(cost.notes(&[timed])[1..], [expected]);
        // Only one call in a hundred has a thread time.
        let few = Row {
            thread_time_total_ns: Some(1e6),
            ..row("app::few", 20_000, 20.0)
        };
        let notes = cost.notes(&[row("app::add", 2_000_000, 20.0), few]);
        assert!(
            notes[1].contains("calls are many and short"),
            "{}",
            notes[1]
        );
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
