//! The session that the environment asks for, and who turns it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::profile::{Profile, ProfileBuilder};
use super::control;
use crate::config::SessionSettings;
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
    let mut builder = Profile::builder();
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

fn write_to(builder: ProfileBuilder, _target: PathBuf) -> ProfileBuilder {
    builder
}
