//! Where `PROFILER_SUMMARY` sends the summary: standard output or error, or a file.

use profiler_host::diagnostics;
use profiler_host::process::output::{Output, READER_TIMEOUT, WriteTimeout};
use profiler_report::internal::OutputStream;
use profiler_report::{Summary, TableOptions};

use super::summary_file;
use crate::config::SummaryTarget;
use crate::switch::{self, with_control};

/// How long the summary waits for a reader of its output.
const WAIT: WriteTimeout = WriteTimeout::Total(READER_TIMEOUT);

/// Writes a summary, unless `PROFILER_ENABLED` has turned measuring off, and warns if that fails.
pub(super) fn write(target: &SummaryTarget, summary: Summary) {
    let result = match target {
        _ if switch::is_off_by_environment() => Ok(()),
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => {
            let table = table(&without_shown_notices(summary), OutputStream::Stderr);
            Output::stderr(WAIT).write_whole(table.as_bytes())
        }
        SummaryTarget::Stdout => {
            Output::stdout(WAIT).write_whole(table(&summary, OutputStream::Stdout).as_bytes())
        }
        SummaryTarget::File(path) => summary_file::write(path, &summary, WAIT),
    };
    if let Err(error) = result {
        let setting = with_control(|control| {
            let settings = &control.settings;
            settings.origin("PROFILER_SUMMARY", "`Builder::summary`")
        });
        diagnostics::warn_once(&format!(
            "the summary cannot be written to {target}: {error}; set {setting} to a file that can be, or to stderr"
        ));
    }
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
