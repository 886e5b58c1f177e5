//! The lines below a summary's table: what the numbers alone do not say.

use profiler_host::diagnostics::printable;

use super::{Row, Summary};
use crate::options::TableOptions;
use crate::own_cost::OwnCost;
use crate::sampled_gpu;
use crate::sampled_idle::SampledIdle;
use crate::sort::is_of_sorting;
use crate::text::list::first_of;
use crate::text::table::TOO_SHORT;

/// Appends the lines below a table; `rows` are those that it shows.
pub(super) fn push_notes(
    text: &mut String,
    summary: &Summary,
    rows: &[Row],
    options: &TableOptions,
) {
    if rows.iter().any(|row| row.too_short) {
        text.push_str(TOO_SHORT);
        text.push('\n');
    }
    let mut remarks = remarks(summary, rows);
    // The order of this table is another one.
    if options.sort_by.is_some() {
        remarks.retain(|note| !is_of_sorting(note));
    }
    options.push_notes(text, remarks);
    for line in state(summary, rows) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// Returns what a reader of the numbers must know, the most useful first: choices that were made for the reader, what is
/// missing, what went wrong, calls that are unusual.
fn remarks(summary: &Summary, rows: &[Row]) -> Vec<String> {
    let mut notes: Vec<String> = summary.notes.iter().map(|note| printable(note)).collect();
    notes.extend(unsaved_and_unmeasured(summary));
    notes.extend(losses(summary));
    notes.extend(missing_streams(rows));
    notes.extend(slow_records(summary));
    notes.extend(summary.notices.iter().cloned());
    notes.extend(calls_with_a_count(rows));
    notes
}

/// Returns the state of the devices, and the cost of the profiler.
fn state(summary: &Summary, rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<String> = cuda(summary).into_iter().collect();
    lines.extend(summary.gpu_idle.iter().filter_map(SampledIdle::line));
    lines.extend(sampled_gpu::notes(&summary.gpus, rows));
    // A file of another program says nothing of it.
    if summary.own_cost != OwnCost::default() {
        lines.extend(summary.own_cost.notes(rows));
    }
    lines
}

#[cfg(feature = "export")]
impl Summary {
    /// Returns the notes on all rows.
    pub(crate) fn note_lines(&self) -> Vec<String> {
        let rows = &self.rows;
        let mut lines = remarks(self, rows);
        lines.extend(state(self, rows));
        lines
    }
}

/// Returns the notes of a summary's [`KeyAverages`](crate::KeyAverages).
pub(super) fn of_averages(summary: &Summary) -> Vec<String> {
    let mut notes = summary.notes.clone();
    let nothing = summary.nothing_measured.iter();
    notes.extend(nothing.map(|reason| format!("nothing was measured: {reason}")));
    notes.extend(calls_with_a_count(&summary.rows));
    notes.extend(losses(summary));
    notes
}

/// Returns lines for unusual calls: for each kind, the first rows that have some.
fn calls_with_a_count(rows: &[Row]) -> Vec<String> {
    type Count = fn(&Row) -> u64;
    let kinds: [(Count, &str, &str, &str); 6] = [
        (
            |row| row.panicked,
            "call",
            "ended with a panic",
            "their times are included",
        ),
        (
            |row| row.dropped_futures,
            "future",
            "dropped before completion",
            "their times until then are included",
        ),
        (
            |row| row.open,
            "call",
            "still open",
            "they are in no column until they end",
        ),
        (
            |row| {
                if row.futures == 0 {
                    row.reentered_spans
                } else {
                    0
                }
            },
            "span",
            "entered several times",
            "each time is a call; `ProfilerLayer::whole_spans` makes a span one call",
        ),
        (
            |row| {
                if row.futures == 0 {
                    0
                } else {
                    row.reentered_spans
                }
            },
            "span",
            "entered several times",
            "each time was a call, until spans there were seen to be those of futures, which are one call each; \
             `ProfilerLayer::whole_spans` and `entered_spans` measure all in one way",
        ),
        (
            |row| row.out_of_order,
            "call",
            "ended out of order, or on another thread",
            "self is an upper bound; drop guards in the reverse order of their creation, on their stack and thread",
        ),
    ];
    let mut notes = Vec::new();
    for (count, noun, event, consequence) in kinds {
        let mut found = rows.iter().filter(|row| count(row) > 0);
        for row in found.by_ref().take(SHOWN) {
            let (name, calls) = (printable(&row.name), counted(count(row), noun));
            notes.push(format!("{name}: {calls} {event}: {consequence}"));
        }
        let more = found.count() as u64;
        if more > 0 {
            notes.push(format!(
                "… and {}: {noun}s {event}",
                counted(more, "more name")
            ));
        }
    }
    notes
}

/// The most names that one note lists.
const SHOWN: usize = 5;

/// Returns a number with its noun: `1 call`, `2 calls`.
fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Describes the log entries, GPU times and spans that are missing, by reason.
fn losses(summary: &Summary) -> Vec<String> {
    let dropped = summary.dropped.iter().map(|(reason, entries)| {
        let (why, advice) = (reason.as_str(), reason.advice());
        let noun = if *entries == 1 { "entry" } else { "entries" };
        format!("{entries} log {noun} dropped: {why}; {advice}")
    });
    let lost = summary.cuda.lost.iter().map(|(reason, calls)| {
        let (why, advice) = (reason.as_str(), reason.advice());
        format!(
            "{} without a GPU time: {why}; {advice}",
            counted(*calls, "call")
        )
    });
    let spans = summary.lost_spans.iter().map(|(reason, spans)| {
        let (why, advice) = (reason.as_str(), reason.advice());
        format!("{} not timed: {why}; {advice}", counted(*spans, "span"))
    });
    let mut notes: Vec<String> = dropped.chain(lost).chain(spans).collect();
    if summary.cuda.rejected_times > 0 {
        notes.push(format!(
            "{} of the CUDA driver left out, since they were negative, infinite or longer than a year: the driver, or a \
             library in front of it, is broken",
            counted(summary.cuda.rejected_times, "time")
        ));
    }
    notes
}

/// Reports that recording events often took long.
fn slow_records(summary: &Summary) -> Option<String> {
    let records = &summary.cuda.records;
    // The scheduler of the system may delay one record in a hundred.
    let long = records.long.min(records.timed);
    (long > records.timed / 100).then(|| {
        format!(
            "{} of {} records of events that were timed took longer than 0.1 ms, the longest {:.1} ms: the launch queue \
             was full, and held up the program's launches too, or the machine was busy with other work; measure fewer \
             scopes, or launch graphs",
            long,
            records.timed,
            records.longest_ns / 1e6
        )
    })
}

/// Reports names that are measured on the wrong stream, or on none.
fn missing_streams(rows: &[Row]) -> impl Iterator<Item = String> + use<> {
    let idle_stream = |row: &Row| row.idle_stream.then(|| printable(&row.name));
    let wrong = names(rows, idle_stream).map(|names| {
        format!(
            "almost no GPU time on the default stream: {names}: if they launch on another stream, write `stream = …`"
        )
    });
    let without = |row: &Row| {
        let some = row.cuda.is_some_and(|cuda| cuda.calls > 0);
        let name = printable(&row.name);
        let some = some.then(|| format!("{name} ({} of {} calls)", row.without_stream, row.calls));
        (row.without_stream > 0).then(|| some.unwrap_or(name))
    };
    let none = names(rows, without).map(|names| {
        format!(
            "no GPU time, since no stream is named: {names}: if they launch kernels, write `stream = …`, or use \
             `cuda::with_stream`, `cuda::set_default_stream` or PROFILER_CUDA_STREAM=legacy or per-thread"
        )
    });
    [wrong, none].into_iter().flatten()
}

fn unsaved_and_unmeasured(summary: &Summary) -> impl Iterator<Item = String> + use<> {
    let (unsaved, unmeasured, refused) = (summary.unsaved, summary.unmeasured, summary.refused);
    let unsaved = (unsaved > 0).then(|| {
        format!(
            "{unsaved} log entries taken and not written yet: their loggers could not save them, and they are lost if the \
             program ends before that; see the warnings"
        )
    });
    // While the program runs, some are on their way at any time.
    let pending = (summary.is_last && summary.pending > 0).then(|| {
        format!(
            "{} log entries not delivered at the end: a logger was slow, or threads logged as the program ended",
            summary.pending
        )
    });
    let unmeasured = (unmeasured > 0).then(|| {
        format!(
            "{} not measured, in no row: no memory for their statistics; give the process more",
            counted(unmeasured, "call")
        )
    });
    let refused = (refused > 0).then(|| {
        format!(
            "{} not measured, in no row: made while the thread was inside the profiler, by a signal handler that \
             interrupted it, a measured allocator, a logger or a schedule; write `bypass = true` for functions that these call",
            counted(refused, "call")
        )
    });
    [unsaved, pending, unmeasured, refused]
        .into_iter()
        .flatten()
}

/// Lists the first rows with a property, as it names them, or returns `None` if there are none.
fn names(rows: &[Row], property: impl Fn(&Row) -> Option<String>) -> Option<String> {
    let names: Vec<String> = rows.iter().filter_map(property).collect();
    (!names.is_empty()).then(|| first_of(names.into_iter(), SHOWN))
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
    let state = match health.in_flight as u64 {
        0 if health.high_water == 0 => {
            return Some(format!(
                "{}: no call was measured on a stream, so times are CPU times",
                health.status
            ));
        }
        0 => "all GPU times are read".to_owned(),
        waiting => format!(
            "{} not read yet, in no column; call `flush` before `summary`",
            counted(waiting, "GPU time")
        ),
    };
    Some(format!(
        "{}: {state}; at most {} waited at once, {} exist{place}",
        health.status,
        counted(health.high_water as u64, "GPU time"),
        counted(health.pairs as u64, "event pair")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::CudaLoss;
    use crate::losses::DropReason;

    fn row(name: &str) -> Row {
        Row {
            name: name.to_owned(),
            panicked: 2,
            ..Row::default()
        }
    }

    #[test]
    fn a_list_of_names_is_short() {
        let name = |row: &Row| Some(row.name.clone());
        let rows: Vec<Row> = ["a", "b", "c", "d", "e", "f", "g"].map(row).into();
        assert_eq!(
            names(&rows, name).as_deref(),
            Some("a, b, c, d, e and 2 more")
        );
        assert_eq!(names(&rows[..2], name).as_deref(), Some("a, b"));
        assert_eq!(names(&rows, |_| None), None);
    }

    #[test]
    fn unusual_calls_have_a_line_with_the_consequence() {
        let rows = [
            row("a"),
            Row {
                name: "b".to_owned(),
                dropped_futures: 1,
                open: 1,
                out_of_order: 3,
                ..Row::default()
            },
        ];
        let expected = [
            "a: 2 calls ended with a panic: their times are included",
            "b: 1 future dropped before completion: their times until then are included",
            "b: 1 call still open: they are in no column until they end",
            "b: 3 calls ended out of order, or on another thread: self is an upper bound; drop guards in the reverse order of their creation, on their stack and thread",
        ];
        assert_eq!(calls_with_a_count(&rows), expected);
    }

    #[test]
    fn a_note_lists_few_of_many_names() {
        let rows = ["a", "b", "c", "d", "e", "f", "g"].map(row);
        let notes = calls_with_a_count(&rows);
        assert_eq!(notes.len(), 6);
        assert_eq!(
            notes.last().map(String::as_str),
            Some("… and 2 more names: calls ended with a panic")
        );
    }

    fn summary() -> Summary {
        Summary::default()
    }

    #[test]
    fn losses_have_their_reason_and_the_remedy() {
        let mut summary = summary();
        summary.dropped = vec![(DropReason::RingFull, 7), (DropReason::LoggerPanicked, 1)];
        summary.cuda.lost = vec![(CudaLoss::PoolEmpty, 1), (CudaLoss::ContextGone, 2)];
        summary.cuda.rejected_times = 2;
        let expected = [
            "7 log entries dropped: ring full; raise PROFILER_RING, log fewer calls with `log_every`, or use a faster logger",
            "1 log entry dropped: logger panicked; fix the panic, or leave the logger out",
            "1 call without a GPU time: event pool empty; raise PROFILER_CUDA_EVENTS, or measure fewer scopes",
            "2 calls without a GPU time: context destroyed; call `flush` before a context is destroyed or its device reset",
            "2 times of the CUDA driver left out, since they were negative, infinite or longer than a year: the driver, or a \
             library in front of it, is broken",
        ];
        assert_eq!(losses(&summary), expected);
    }

    #[test]
    fn every_reason_has_advice() {
        for reason in CudaLoss::ALL {
            assert!(!reason.advice().is_empty(), "{reason:?}");
        }
        for reason in DropReason::ALL {
            assert!(!reason.advice().is_empty(), "{reason:?}");
        }
    }

    #[test]
    fn what_was_not_saved_or_not_measured_is_counted() {
        let mut summary = summary();
        (summary.unsaved, summary.unmeasured, summary.refused) = (3, 1, 2);
        let notes: Vec<String> = unsaved_and_unmeasured(&summary).collect();
        let expected = [
            "3 log entries taken and not written yet: their loggers could not save them, and they are lost if the program \
             ends before that; see the warnings",
            "1 call not measured, in no row: no memory for their statistics; give the process more",
            "2 calls not measured, in no row: made while the thread was inside the profiler, by a signal handler that \
             interrupted it, a measured allocator, a logger or a schedule; write `bypass = true` for functions that these call",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn names_without_a_stream_are_asked_for_one() {
        let none = Row {
            without_stream: 1,
            ..row("a")
        };
        let wrong = Row {
            idle_stream: true,
            ..row("b")
        };
        let some = Row {
            without_stream: 3,
            calls: 7,
            cuda: Some(crate::Times {
                calls: 4,
                ..crate::Times::default()
            }),
            ..row("c")
        };
        let notes: Vec<String> = missing_streams(&[none, wrong, some]).collect();
        let expected = [
            "almost no GPU time on the default stream: b: if they launch on another stream, write `stream = …`",
            "no GPU time, since no stream is named: a, c (3 of 7 calls): if they launch kernels, write `stream = …`, or \
             use `cuda::with_stream`, `cuda::set_default_stream` or PROFILER_CUDA_STREAM=legacy or per-thread",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn slow_records_say_what_was_slow() {
        let mut summary = summary();
        assert_eq!(slow_records(&summary), None);
        summary.cuda.records.timed = 100;
        summary.cuda.records.long = 2;
        summary.cuda.records.longest_ns = 1.26e6;
        let expected = "2 of 100 records of events that were timed took longer than 0.1 ms, the longest 1.3 ms: the launch \
                        queue was full, and held up the program's launches too, or the machine was busy with other work; \
                        measure fewer scopes, or launch graphs";
        assert_eq!(slow_records(&summary).as_deref(), Some(expected));
    }

    #[test]
    fn the_state_of_the_gpu_is_shown_to_programs_that_use_it() {
        let mut summary = summary();
        summary.cuda.is_explained = true;
        assert_eq!(cuda(&summary), None, "nothing asked for GPU times");
        summary.cuda.is_explained = false;
        summary.cuda.status = "the CUDA driver found no device".to_owned();
        let expected = "times are CPU times: the CUDA driver found no device";
        assert_eq!(cuda(&summary).as_deref(), Some(expected));
        summary.cuda.status = "CUDA 12.4 on H100".to_owned();
        summary.cuda.ready = true;
        let expected =
            "CUDA 12.4 on H100: no call was measured on a stream, so times are CPU times";
        assert_eq!(cuda(&summary).as_deref(), Some(expected));
        (summary.cuda.high_water, summary.cuda.pairs) = (9, 64);
        let expected = "CUDA 12.4 on H100: all GPU times are read; at most 9 GPU times waited at once, 64 event pairs exist";
        assert_eq!(cuda(&summary).as_deref(), Some(expected));
        summary.cuda.in_flight = 1;
        summary.cuda.uncertainty_ns = Some(2400.0);
        let expected = "CUDA 12.4 on H100: 1 GPU time not read yet, in no column; call `flush` before `summary`; at most 9 \
                        GPU times waited at once, 64 event pairs exist; placed on the time line to ±2.4 µs";
        assert_eq!(cuda(&summary).as_deref(), Some(expected));
    }
}
