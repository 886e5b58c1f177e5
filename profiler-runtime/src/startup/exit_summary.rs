//! The summary at the end of the program.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{mistakes, summary_file, summary_writer};
use crate::config::SummaryTarget;
use crate::diagnostics;
use crate::process::exit::Run;
use crate::process::fork;
use crate::process::output::{Output, READER_TIMEOUT, WriteTimeout};
use crate::report::TableOptions;
use crate::report::summary::{Summary, summary};
use crate::report::text::terminal::Stream;
use crate::switch::with_control;

/// The number of calls in the last summary that was written + 1; 0 if none was written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// How long the summary waits for a reader of its output.
const WAIT: WriteTimeout = WriteTimeout::Total(READER_TIMEOUT);

/// Writes the summary in an exit hook, unless a guard of `init` has written one and nothing was measured since.
pub(super) fn write_at_exit(run: Run) {
    // The second run comes from the exit handler that runs last. A file is replaced; a table would be printed twice.
    let is_file = || matches!(target(), SummaryTarget::File(_));
    let may_write = run == Run::First || is_file();
    if may_write && WRITTEN.load(Relaxed) <= calls(&summary()) {
        write();
    }
}

/// Writes the last summary to the target that the settings give.
pub(super) fn write() {
    if !fork::is_own_process() {
        return;
    }
    // It would replace the last summary by an earlier one.
    summary_writer::stop(READER_TIMEOUT);
    mistakes::warn();
    let mut summary = summary();
    WRITTEN.store(calls(&summary) + 1, Relaxed);
    summary.is_last = true;
    write_to(&target(), summary);
}

/// Writes the summary of a program that continues.
pub(super) fn rewrite(target: &SummaryTarget, interval: Duration) {
    let mut summary = summary();
    summary.interval_ns = Some(interval.as_nanos() as f64);
    write_to(target, summary);
}

fn write_to(target: &SummaryTarget, summary: Summary) {
    let result = match target {
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => {
            let table = table(&without_shown_notices(summary), Stream::Stderr);
            Output::stderr(WAIT).write_whole(table.as_bytes())
        }
        SummaryTarget::Stdout => {
            Output::stdout(WAIT).write_whole(table(&summary, Stream::Stdout).as_bytes())
        }
        SummaryTarget::File(path) => summary_file::write(&summary, path, WAIT),
    };
    if let Err(error) = result {
        diagnostics::warn_once(&format!(
            "the summary cannot be written to {target}: {error}; set PROFILER_SUMMARY to a file \
             that can be, or to stderr"
        ));
    }
}

fn target() -> SummaryTarget {
    with_control(|control| control.settings.summary.clone())
}

fn calls(summary: &Summary) -> u64 {
    summary.rows.iter().map(|row| row.calls).sum()
}

/// Removes the notices that standard error shows already.
fn without_shown_notices(mut summary: Summary) -> Summary {
    summary
        .notices
        .retain(|notice| !diagnostics::is_on_stderr(notice));
    summary
}

fn table(summary: &Summary, stream: Stream) -> String {
    format!("\n{}\n", summary.table(&TableOptions::for_stream(stream)))
}
