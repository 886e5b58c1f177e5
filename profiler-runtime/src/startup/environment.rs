//! The session that the environment asks for.

use std::path::PathBuf;

use profiler_host::diagnostics;
use profiler_report::ExportError;

use super::trace_file::{self, TraceFile};
use crate::session::{Profile, ProfileBuilder, Trace, environment};
use crate::snapshot::trace::tensorboard_trace_handler;
use crate::switch::{self, with_control};

/// Starts the session, unless it is running.
pub(super) fn start() {
    let settings = with_control(|control| control.settings.session.clone());
    let Some(target) = settings.trace else { return };
    let start = || {
        let mut builder = Profile::builder().of_environment();
        if let Some(schedule) = settings.schedule {
            builder = builder.schedule(schedule);
        }
        write_windows_to(builder, target).start()
    };
    if let Err(error) = environment::start(start) {
        diagnostics::warn_once(&format!("PROFILER_TRACE: {error}"));
    }
}

/// Has each window written to a file, or to a folder for TensorBoard, but none that `PROFILER_ENABLED` has left empty.
fn write_windows_to(builder: ProfileBuilder, target: PathBuf) -> ProfileBuilder {
    if let Some(file) = TraceFile::parse(&target) {
        return builder.on_trace_ready(unless_off(move |trace: &Trace| file.write(trace)));
    }
    if trace_file::is_likely_a_file(&target) {
        diagnostics::warn_once(&format!(
            "PROFILER_TRACE: {} does not end in {}, so it is a folder, which gets a file for each window: end the name so \
             for a file, or in `/` for a folder",
            target.display(),
            trace_file::ENDINGS
        ));
    }
    builder.on_trace_ready(unless_off(tensorboard_trace_handler(target)))
}

fn unless_off(
    mut write: impl FnMut(&Trace) -> Result<(), ExportError>,
) -> impl FnMut(&Trace) -> Result<(), ExportError> {
    move |trace| {
        if switch::is_off_by_environment() {
            Ok(())
        } else {
            write(trace)
        }
    }
}
