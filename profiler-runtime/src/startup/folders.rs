//! The folders of the files that the settings name.

use std::path::Path;

use profiler_host::diagnostics;
use profiler_host::process::fork;

use super::process_file::make_folder;
use crate::config::SummaryTarget;
use crate::switch::{self, with_control};

/// Creates the folder of each file that the settings name, or warns now that it is missing: the end of the program would be
/// too late. Called each time that the settings may have changed.
pub(super) fn prepare() {
    if switch::is_off_by_environment() || !fork::is_own_process() {
        return;
    }
    let (summary, origin) = with_control(|control| {
        let settings = &control.settings;
        let origin = settings.origin("PROFILER_SUMMARY", "`Builder::summary`");
        (settings.summary.clone(), origin)
    });
    if let SummaryTarget::File(path) = summary {
        make(&path, origin, "the table goes to standard error");
    }
    #[cfg(feature = "trace")]
    if let Some(path) = with_control(|control| control.settings.session.trace.clone())
        && super::trace_file::TraceFile::parse(&path).is_some()
    {
        make(&path, "PROFILER_TRACE", "no trace is written");
    }
}

fn make(path: &Path, origin: &str, otherwise: &str) {
    if let Err((folder, error)) = make_folder(path) {
        diagnostics::warn_once(&format!(
            "{origin}: the folder {} does not exist and cannot be created ({error}): create it before the program ends, or \
             {otherwise}",
            folder.display()
        ));
    }
}
