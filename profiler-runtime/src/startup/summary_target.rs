//! Where `PROFILER_SUMMARY` sends the summary: standard output or error, or a file.

use std::io;

use profiler_host::diagnostics;
use profiler_host::process::output::{Output, READER_TIMEOUT, WriteTimeout};
use profiler_report::internal::OutputStream;
use profiler_report::{Summary, TableOptions};

use super::{summary_file, written};
use crate::config::SummaryTarget;
use crate::switch::{self, with_control};

/// How long the summary waits for a reader of its output.
const WAIT: WriteTimeout = WriteTimeout::Total(READER_TIMEOUT);

const VARIABLE: &str = "PROFILER_SUMMARY";

/// Writes a summary, unless `PROFILER_ENABLED` has turned measuring off, and warns if that fails. The table of the last one goes to
/// standard error if its file cannot be written.
pub(super) fn write(target: &SummaryTarget, summary: &Summary) {
    let setting = || {
        with_control(|control| {
            let settings = &control.settings;
            settings.origin(VARIABLE, "`Builder::summary`")
        })
    };
    let mut is_unwritten = false;
    let result = match target {
        _ if switch::is_off_by_environment() => Ok(()),
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => write_to_stderr(summary),
        SummaryTarget::Stdout => {
            Output::stdout(WAIT).write_whole(table(summary, OutputStream::Stdout).as_bytes())
        }
        SummaryTarget::File(path) => {
            let written = summary_file::write(path, summary, WAIT);
            if written.is_err() && summary.is_last {
                is_unwritten = true;
            }
            written.map(|paths| {
                if summary.is_last && setting() == VARIABLE {
                    paths.into_iter().for_each(written::note);
                }
            })
        }
    };
    if let Err(error) = result {
        let instead = if is_unwritten {
            ": the table goes to standard error instead"
        } else {
            ""
        };
        diagnostics::warn_once(&format!(
            "the summary cannot be written to {target}: {error}{instead}; set {} to a file that can be, or to stderr",
            setting()
        ));
    }
    if is_unwritten {
        let _ = write_to_stderr(summary);
    }
}

fn write_to_stderr(summary: &Summary) -> io::Result<()> {
    let table = table(
        &without_shown_notices(summary.clone()),
        OutputStream::Stderr,
    );
    Output::stderr(WAIT).write_whole(table.as_bytes())
}

/// Removes the notices that standard error shows already.
fn without_shown_notices(mut summary: Summary) -> Summary {
    summary
        .notices
        .retain(|notice| !diagnostics::is_on_stderr(notice));
    summary
}

fn table(summary: &Summary, stream: OutputStream) -> String {
    format!("\n{}\n", summary.table(TableOptions::for_stream(stream)))
}
