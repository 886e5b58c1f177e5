//! The summary at the end of the program.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::mistakes;
use crate::config::SummaryTarget;
use crate::diagnostics;
use crate::process::exit::Run;
use crate::process::fork;
use crate::process::output::new_file;
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

/// Writes the summary to the target that the settings give.
pub(super) fn write() {
    if !fork::is_own_process() {
        return;
    }
    mistakes::warn();
    let summary = summary();
    WRITTEN.store(calls(&summary) + 1, Relaxed);
    let target = target();
    let result = match &target {
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => {
            let table = table(&without_shown_notices(summary), Stream::Stderr);
            Output::stderr(WAIT).write_whole(table.as_bytes())
        }
        SummaryTarget::Stdout => {
            Output::stdout(WAIT).write_whole(table(&summary, Stream::Stdout).as_bytes())
        }
        SummaryTarget::File(path) => {
            new_file::write(path, file_content(&summary, path).as_bytes(), WAIT)
        }
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

/// Returns the summary in the format that the file's extension asks for.
fn file_content(summary: &Summary, path: &Path) -> String {
    let has_extension = |extension| {
        path.extension()
            .is_some_and(|other| other.eq_ignore_ascii_case(extension))
    };
    if has_extension("json") {
        summary.to_json()
    } else if has_extension("csv") {
        summary.to_csv()
    } else {
        // A file has no width to fit the table into.
        summary.table(&TableOptions::new().row_limit(None).width(usize::MAX))
    }
}
