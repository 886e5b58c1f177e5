//! The lines below a summary's table: what the numbers alone do not say.

use super::{Row, Summary};
use crate::diagnostics::printable;
use crate::report::text::table::TOO_SHORT;

/// Appends the notes of a summary; `rows` are those that the table shows.
pub(super) fn push_notes(text: &mut String, summary: &Summary, rows: &[Row]) {
    let mut notes: Vec<String> = summary.notes.iter().map(|note| printable(note)).collect();
    if rows.iter().any(|row| row.too_short) {
        notes.push(TOO_SHORT.to_owned());
    }
    notes.extend(calls_with_a_count(rows));
    notes.extend(losses(summary));
    notes.extend(slow_records(summary));
    notes.extend(missing_streams(rows));
    notes.extend(unsaved_and_unmeasured(summary));
    notes.extend(summary.notices.iter().cloned());
    notes.extend(cuda(summary));
    notes.push(own_cost(summary));
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
}

/// Returns the notes of a summary's [`KeyAverages`](crate::report::KeyAverages).
pub(super) fn of_averages(summary: &Summary) -> Vec<String> {
    let mut notes = summary.notes.clone();
    let nothing = summary.nothing_measured.iter();
    notes.extend(nothing.map(|reason| format!("nothing was measured: {reason}")));
    let out_of_order = summary.rows.iter().filter(|row| row.out_of_order > 0);
    notes.extend(out_of_order.map(|row| {
        format!(
            "{}: {} ended out of order, so that self is an upper bound",
            row.name, row.out_of_order
        )
    }));
    notes
}

/// Returns a line for each row and each count of unusual calls that it has.
fn calls_with_a_count(rows: &[Row]) -> Vec<String> {
    type Count = fn(&Row) -> u64;
    let counts: [(&str, Count); 4] = [
        ("panicked", |row| row.panicked),
        ("dropped before done", |row| row.dropped_futures),
        ("still open, in no column", |row| row.open),
        (
            "ended out of order, so that self is an upper bound",
            |row| row.out_of_order,
        ),
    ];
    let mut notes = Vec::new();
    for (what, count) in counts {
        for row in rows.iter().filter(|row| count(row) > 0) {
            notes.push(format!("{}: {} {what}", printable(&row.name), count(row)));
        }
    }
    notes
}

/// Describes the log entries and GPU times that are missing, by reason.
fn losses(summary: &Summary) -> Vec<String> {
    let dropped = summary
        .dropped
        .iter()
        .map(|(reason, entries)| format!("{entries} log entries dropped: {}", reason.as_str()));
    let lost =
        summary.cuda.lost.iter().map(|(reason, calls)| {
            format!("{calls} calls without a GPU time: {}", reason.as_str())
        });
    let mut notes: Vec<String> = dropped.chain(lost).collect();
    if summary.cuda.rejected_times > 0 {
        notes.push(format!(
            "{} impossible times of the CUDA driver rejected",
            summary.cuda.rejected_times
        ));
    }
    notes
}

/// Reports that recording events often took long.
fn slow_records(summary: &Summary) -> Option<String> {
    let records = &summary.cuda.records;
    // The scheduler of the system may delay one record in a hundred.
    (records.long * 100 > records.timed).then(|| {
        format!(
            "{} of {} records of events that were timed took longer than 0.1 ms, the longest {:.1} ms: the launch queue \
             was full, and held up the program's launches too, or the machine was busy with other work",
            records.long,
            records.timed,
            records.longest_ns / 1e6
        )
    })
}

/// Reports names that are measured on the wrong stream, or on none.
fn missing_streams(rows: &[Row]) -> impl Iterator<Item = String> + use<> {
    let idle_stream = |row: &Row| row.idle_stream;
    let wrong = names(rows, idle_stream).map(|names| {
        format!(
            "almost no GPU time on the default stream: {names}; what launches on another stream wants \
             `stream = …`"
        )
    });
    let none = names(rows, |row| row.without_stream > 0).map(|names| {
        format!(
            "no GPU time, since no stream is named: {names}; what launches kernels wants `stream = …`, \
             `cuda::with_stream` or `cuda::set_default_stream`, or PROFILER_CUDA_STREAM=legacy or per-thread"
        )
    });
    [wrong, none].into_iter().flatten()
}

fn unsaved_and_unmeasured(summary: &Summary) -> impl Iterator<Item = String> + use<> {
    let (unsaved, unmeasured) = (summary.unsaved, summary.unmeasured);
    let unsaved = (unsaved > 0).then(|| format!("{unsaved} log entries taken and not written yet"));
    let unmeasured = (unmeasured > 0)
        .then(|| format!("{unmeasured} calls not measured: no memory for their statistics"));
    [unsaved, unmeasured].into_iter().flatten()
}

/// Lists the first names of rows with a property, or returns `None` if there are none.
fn names(rows: &[Row], has_property: impl Fn(&Row) -> bool) -> Option<String> {
    const SHOWN: usize = 5;
    let names: Vec<String> = rows
        .iter()
        .filter(|row| has_property(row))
        .map(|row| printable(&row.name))
        .collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.get(..names.len() - more)?.join(", ");
    match (names.len(), more) {
        (0, _) => None,
        (_, 0) => Some(shown),
        _ => Some(format!("{shown} and {more} more")),
    }
}

/// Describes the state of GPU measurement, unless it is off or a notice has explained it.
fn cuda(summary: &Summary) -> Option<String> {
    let health = &summary.cuda;
    if !health.ready {
        return (!health.is_explained).then(|| format!("times are CPU times: {}", health.status));
    }
    let place = health.uncertainty_ns.map_or(String::new(), |ns| {
        format!("; placed on the time line to ±{:.1} µs", ns / 1e3)
    });
    Some(format!(
        "{}: {} GPU times in flight, {} at most, {} event pairs{place}",
        health.status, health.in_flight, health.high_water, health.pairs
    ))
}

fn own_cost(summary: &Summary) -> String {
    let cost = &summary.own_cost;
    format!(
        "the profiler itself: {:.3} % of the wall time in measured threads, {:.3} % in its own",
        cost.measured_threads * 100.0,
        cost.background * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> Row {
        Row {
            name: name.to_owned(),
            panicked: 2,
            ..Row::default()
        }
    }

    #[test]
    fn a_list_of_names_is_short() {
        let rows: Vec<Row> = ["a", "b", "c", "d", "e", "f", "g"].map(row).into();
        assert_eq!(
            names(&rows, |_| true).as_deref(),
            Some("a, b, c, d, e and 2 more")
        );
        assert_eq!(names(&rows[..2], |_| true).as_deref(), Some("a, b"));
        assert_eq!(names(&rows, |_| false), None);
    }

    #[test]
    fn each_row_with_panics_has_a_line() {
        let rows = [row("a"), Row::default()];
        assert_eq!(calls_with_a_count(&rows), ["a: 2 panicked"]);
    }
}
