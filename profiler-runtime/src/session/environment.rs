//! The session that the environment asks for, and who turns it.

use std::path::PathBuf;
#[cfg(feature = "trace")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::control;
use super::profile::{Profile, ProfileBuilder};
#[cfg(feature = "trace")]
use super::trace::Trace;
use crate::config::SessionSettings;
#[cfg(feature = "trace")]
use crate::export::{ExportError, tensorboard_trace_handler};
use crate::health;
use crate::switch::{is_enabled, with_control};

/// The session, while it runs.
static OWN: Mutex<Option<Profile>> = Mutex::new(None);

fn own() -> MutexGuard<'static, Option<Profile>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a step of the session that the environment asked for (`PROFILER_TRACE`, `PROFILER_SCHEDULE`) and begins the
/// next one; nothing where it asked for none. [`step!`](crate::step!) is the same.
///
/// Sessions of the program's own have steps of their own: [`Profile::step`].
///
/// # Examples
///
/// ```
/// for _epoch in 0..3 {
///     // the training
///     profiler_runtime::step();
/// }
/// ```
pub fn step() {
    // Whoever comes first reads the environment.
    let _ = is_enabled();
    if let Some(profile) = &*own() {
        profile.step();
    }
}

/// Does what the environment asks for, when it has been read.
pub(crate) fn begin(settings: &SessionSettings) {
    if settings.trace.is_none() || cfg!(feature = "strip") {
        return;
    }
    if settings.control.is_none() && settings.signal.is_none() {
        start();
    } else {
        control::watch(settings.control.clone(), settings.signal);
    }
}

/// Starts the session, unless it runs.
pub(super) fn start() {
    let settings = with_control(|control| control.settings.session.clone());
    let Some(target) = settings.trace else { return };
    let mut own = own();
    if own.is_some() {
        return;
    }
    let mut builder = Profile::builder().own();
    if let Some(schedule) = settings.schedule {
        builder = builder.schedule(schedule);
    }
    match write_to(builder, target).start() {
        Ok(profile) => *own = Some(profile),
        Err(error) => health::notice(&format!("PROFILER_TRACE: {error}")),
    }
}

/// Ends the session, if it runs.
pub(super) fn stop() {
    let ended = own().take();
    drop(ended);
}

/// Has each window written to where the environment says.
#[cfg(feature = "trace")]
fn write_to(builder: ProfileBuilder, target: PathBuf) -> ProfileBuilder {
    let is_file = |name: &str| name.ends_with(".json") || name.ends_with(".json.gz");
    let name = target
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    match name.filter(|name| is_file(name)) {
        Some(name) => {
            builder.on_trace_ready(move |trace: &Trace| write_file(trace, &target, &name))
        }
        None => builder.on_trace_ready(tensorboard_trace_handler(target)),
    }
}

/// No window of the process overwrites another, though the session was stopped and started again: from the second
/// on, a number stands in the name. Steps would not do: the last two windows may have ended with the same one.
#[cfg(feature = "trace")]
fn write_file(trace: &Trace, target: &std::path::Path, name: &str) -> Result<(), ExportError> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Relaxed) + 1;
    let (stem, extension) = name.split_at(name.rfind(".json").unwrap_or(name.len()));
    let numbered = format!("{stem}_{number}{extension}");
    let name = if number > 1 { &numbered } else { name };
    trace.export_chrome_trace(target.with_file_name(name))
}

#[cfg(not(feature = "trace"))]
fn write_to(builder: ProfileBuilder, _: PathBuf) -> ProfileBuilder {
    health::notice(
        "PROFILER_TRACE is set, but profiler-runtime was built without its feature `trace`: nothing is written; \
         build it with the feature",
    );
    builder
}
