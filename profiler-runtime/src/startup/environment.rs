//! The session that the environment asks for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::diagnostics;
use profiler_host::process::fork;

use super::trace_file::{self, TraceFile};
use super::{lost_scopes, written};
use crate::session::{Profile, ProfileBuilder, Trace, environment};
use crate::snapshot::trace::TensorBoardTraces;
use crate::switch::{self, with_control};

/// `true` if the session was to start, and `PROFILER_ENABLED` had turned measuring off.
static IS_DEFERRED: AtomicBool = AtomicBool::new(false);

/// Starts the session, unless it is running: with measuring off by `PROFILER_ENABLED`, not before the program turns it on, since
/// kernels would be recorded for windows that are not written.
pub(super) fn start() {
    // Before the question: who turns measuring on after the answer sees it.
    IS_DEFERRED.store(true, Relaxed);
    if !switch::is_off_by_environment() {
        start_deferred();
    }
}

/// Starts the session if it was to start while measuring was off. Called once measuring is on.
pub(super) fn start_deferred() {
    if fork::is_own_process() && IS_DEFERRED.swap(false, Relaxed) {
        begin();
    }
}

/// Returns `true` if the session runs, or waits for measuring to be turned on.
pub(super) fn is_running() -> bool {
    IS_DEFERRED.load(Relaxed) || environment::is_running()
}

/// Ends the session, if it runs.
pub(super) fn stop() {
    IS_DEFERRED.store(false, Relaxed);
    environment::stop();
}

fn begin() {
    let settings = with_control(|control| control.settings.session.clone());
    let Some(target) = settings.trace else { return };
    let start = || {
        let mut builder = Profile::builder().of_environment();
        if let Some(schedule) = settings.schedule {
            builder = builder.schedule(schedule);
        }
        if let Some(capacity) = settings.capacity {
            builder = builder.capacity(capacity);
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
        return builder.on_trace_ready(move |trace: &Trace| {
            lost_scopes::note(trace);
            file.write(trace)
        });
    }
    if trace_file::is_likely_a_file(&target) {
        diagnostics::warn_once(&format!(
            "PROFILER_TRACE: {} does not end in {}, so it is a folder, which gets a file for each window: end the name so \
             for a file, or in `/` for a folder",
            target.display(),
            trace_file::ENDINGS
        ));
    }
    let traces = TensorBoardTraces::new(target);
    builder.on_trace_ready(move |trace: &Trace| {
        lost_scopes::note(trace);
        traces.export(trace).map(written::note)
    })
}
