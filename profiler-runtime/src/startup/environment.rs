//! The session that the environment asks for.

use std::path::PathBuf;

use super::external_control;
use super::trace_file::{self, TraceFile};
use crate::config::SessionSettings;
use crate::diagnostics;
use crate::report::export::tensorboard_trace_handler;
use crate::session::{Profile, ProfileBuilder, Trace, environment};
use crate::switch::{NEVER_MEASURES, with_control};

/// Starts the session, or the thread that waits for the command to start it.
pub(super) fn begin(settings: &SessionSettings) {
    if settings.trace.is_none() || NEVER_MEASURES {
        return;
    }
    if settings.control.is_none() && settings.signal.is_none() {
        start();
    } else {
        external_control::watch(settings.control.clone(), settings.signal);
    }
}

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

/// Has each window written to a file, or to a folder for TensorBoard.
fn write_windows_to(builder: ProfileBuilder, target: PathBuf) -> ProfileBuilder {
    if let Some(file) = TraceFile::parse(&target) {
        return builder.on_trace_ready(move |trace: &Trace| file.write(trace));
    }
    if trace_file::is_likely_a_file(&target) {
        diagnostics::warn_once(&format!(
            "PROFILER_TRACE: {} does not end in {}, so it is a folder, which gets a file for each window: end the name so \
             for a file, or in `/` for a folder",
            target.display(),
            trace_file::ENDINGS
        ));
    }
    builder.on_trace_ready(tensorboard_trace_handler(target))
}
