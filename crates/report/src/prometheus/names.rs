//! The metrics of names.

use std::collections::HashMap;

use profiler_host::diagnostics::printable;

use super::text::{Metric, Text};
use crate::histogram::{CALL_LIMITS, CallsByLimit, Histogram};
use crate::in_order::InOrder as _;
use crate::row::Row;
use crate::times::Times;

/// How many names have series of their own: with both clocks, some 40 lines each.
const MAX_NAMES: usize = 256;
/// The series of all other names.
const OTHER: &str = "(other)";

/// The sums of a name, or of all names without a series of their own.
#[derive(Debug, Default)]
struct Series {
    name: String,
    calls: u64,
    open: u64,
    panicked: u64,
    joules: Option<f64>,
    clocks: [Option<OfClock>; 2],
}

/// The times by one clock, in nanoseconds.
#[derive(Debug, Default)]
struct OfClock {
    self_ns: f64,
    /// The times of single calls, if any was measured.
    single: Option<Single>,
}

/// The times of single calls.
#[derive(Debug, Default)]
struct Single {
    sum_ns: f64,
    calls: CallsByLimit,
}

/// The values of the label `clock`.
const CLOCKS: [&str; 2] = ["cpu", "cuda"];

pub(super) fn write(text: &mut Text, rows: &[Row]) {
    let all = series(rows);
    let write = |mut metric: Metric<'_>, value: &dyn Fn(&Series) -> Option<f64>| {
        for each in &all {
            if let Some(value) = value(each) {
                metric.sample(&[("name", &each.name)], value);
            }
        }
    };
    write(
        text.counter("profiler_calls_total", "Finished calls."),
        &|each| Some(each.calls as f64),
    );
    let help = "Calls that have begun and not ended, without recursive ones.";
    write(text.gauge("profiler_open_calls", help), &|each| {
        Some(each.open as f64)
    });
    let help = "Calls that ended with a panic.";
    write(
        text.counter("profiler_panicked_calls_total", help),
        &|each| Some(each.panicked as f64),
    );
    // Not a counter: a GPU time that is read late lowers the shares of calls on other streams.
    let help =
        "The share of the devices' measured energy that belongs to the GPU time of the calls.";
    write(text.gauge("profiler_energy_joules", help), &|each| {
        each.joules
    });
    write_self_times(text, &all);
    write_histograms(text, &all);
}

fn write_self_times(text: &mut Text, all: &[Series]) {
    let help = "The time of calls without their children, by clock.";
    let mut metric = text.counter("profiler_self_seconds_total", help);
    for (labels, clock) in all.iter().flat_map(Series::clocks) {
        metric.sample(&labels, clock.self_ns / 1e9);
    }
}

fn write_histograms(text: &mut Text, all: &[Series]) {
    let help =
        "The times of calls with their children, by clock, resampled: limits are exact to 1/16.";
    let mut metric = text.histogram("profiler_call_seconds", help);
    let clocks = all.iter().flat_map(Series::clocks);
    for (labels, single) in
        clocks.filter_map(|(labels, clock)| Some((labels, clock.single.as_ref()?)))
    {
        let limits = CALL_LIMITS.iter().map(|(_, label)| *label).chain(["+Inf"]);
        let mut calls = 0;
        for (limit, more) in limits.zip(single.calls.0) {
            calls += more;
            let labels = [labels[0], labels[1], ("le", limit)];
            metric.sample_of("_bucket", &labels, calls as f64);
        }
        metric.sample_of("_sum", &labels, single.sum_ns / 1e9);
        metric.sample_of("_count", &labels, calls as f64);
    }
}

/// Returns the series of all rows, those of names that were called first before the others.
fn series(rows: &[Row]) -> Vec<Series> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    // Rows that were read from a file have no numbers.
    rows.order_by_key(|row| row.number.0.unwrap_or(u32::MAX));
    let mut all = Vec::<Series>::new();
    let mut places = HashMap::<String, usize>::new();
    for row in rows {
        // Readers of the format disagree about control characters. Names that look alike then have one series.
        let mut name = printable(&row.name);
        // By its number, so that a name that is first called later takes no series from another one.
        let number = row.number.0.map(|number| number as usize);
        if number.unwrap_or(all.len()) >= MAX_NAMES && !places.contains_key(&name) {
            OTHER.clone_into(&mut name);
        }
        let place = *places.entry(name.clone()).or_insert(all.len());
        if place == all.len() {
            all.push(Series {
                name,
                ..Series::default()
            });
        }
        all[place].add(row);
    }
    all
}

impl Series {
    fn add(&mut self, row: &Row) {
        self.calls += row.calls;
        self.open += row.open;
        self.panicked += row.panicked;
        if let Some(joules) = row.energy.and_then(|energy| energy.joules) {
            *self.joules.get_or_insert_default() += joules;
        }
        let clocks = [
            (row.cpu, &row.cpu_histogram),
            (row.cuda, &row.cuda_histogram),
        ];
        for (sum, (times, histogram)) in self.clocks.iter_mut().zip(clocks) {
            if let Some(times) = times {
                sum.get_or_insert_default().add(&times, histogram.as_ref());
            }
        }
    }

    /// Returns the clocks that have times, with their labels.
    fn clocks(&self) -> impl Iterator<Item = ([(&str, &str); 2], &OfClock)> {
        let clocks = CLOCKS.into_iter().zip(&self.clocks);
        clocks.filter_map(|(clock, times)| {
            let labels = [("name", &*self.name), ("clock", clock)];
            Some((labels, times.as_ref()?))
        })
    }
}

impl OfClock {
    fn add(&mut self, times: &Times, histogram: Option<&Histogram>) {
        let counters = times.counters();
        self.self_ns += counters.self_ns;
        if let Some(histogram) = histogram {
            let single = self.single.get_or_insert_default();
            single.sum_ns += counters.sum_ns;
            single.calls.add(&histogram.calls_by_limit());
        }
    }
}
