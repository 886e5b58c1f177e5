//! A summary in a file, in the format that the ending of its name selects.

use std::io;
use std::path::Path;

use profiler_host::diagnostics::{self, printable};
use profiler_host::process::output::{WriteTimeout, new_file};

use super::Summary;
use super::format::SummaryFormat;
use crate::options::TableOptions;
use crate::written::TABLE_TITLE;

/// Writes the summary in the format that the ending of the file's name selects.
///
/// # Errors
///
/// Returns the system's error if the file cannot be created or written.
pub fn write(summary: &Summary, path: &Path, timeout: WriteTimeout) -> io::Result<()> {
    // Files without a format were refused when the settings were read.
    let format = SummaryFormat::of(path).unwrap_or(SummaryFormat::Table);
    if let Some(reason) = &summary.nothing_measured
        && format.shows_callers()
        && format != SummaryFormat::Html
        && summary.is_last
    {
        // These formats have no place for it.
        diagnostics::warn_once(&format!("nothing was measured: {reason}"));
    }
    let text = match format {
        SummaryFormat::Json => summary.to_json(),
        SummaryFormat::Csv => summary.to_csv(),
        SummaryFormat::Prometheus => summary.to_prometheus(),
        // A file has no width to fit the table into.
        SummaryFormat::Table => {
            let table = TableOptions::new()
                .row_limit(None)
                .note_limit(None)
                .width(usize::MAX);
            let program = printable(&summary.environment.program);
            format!("{TABLE_TITLE}{program}\n\n{}", summary.table(table))
        }
        for_viewers => return write_for_viewers(summary, path, for_viewers),
    };
    new_file::write(path, text.as_bytes(), timeout)
}

#[cfg(feature = "export")]
fn write_for_viewers(summary: &Summary, path: &Path, format: SummaryFormat) -> io::Result<()> {
    use crate::error::ExportError;

    let written = match format {
        SummaryFormat::Html => summary.export_html(path),
        SummaryFormat::Pstats => summary.dump_stats(path),
        SummaryFormat::Pprof => summary.export_pprof(path),
        SummaryFormat::Stacks => summary.call_tree().export_stacks_of_times(path),
        SummaryFormat::Table
        | SummaryFormat::Json
        | SummaryFormat::Csv
        | SummaryFormat::Prometheus => Ok(()),
    };
    written.map_err(|error| match error {
        ExportError::Io { source, .. } => source,
        other => io::Error::other(other),
    })
}

/// Such a file is refused when the settings are read.
#[cfg(not(feature = "export"))]
fn write_for_viewers(_: &Summary, _: &Path, _: SummaryFormat) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
