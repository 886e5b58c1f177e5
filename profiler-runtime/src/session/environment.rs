//! The session that the environment asked for, while it runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::process::fork;
use profiler_host::sync::{Lock, Locked};

use super::profile::{Profile, ProfileError};

/// The session, while it runs.
static OWN: Lock<Option<Profile>> = Lock::new(None);

/// `true` once it has been started.
static WAS_STARTED: AtomicBool = AtomicBool::new(false);

fn own() -> Locked<'static, Option<Profile>> {
    OWN.lock()
}

/// Ends a step of the session, if it runs.
pub(crate) fn step() {
    // A forked process has none of the profiler's threads.
    if !fork::is_own_process() {
        return;
    }
    // With the lock released: a step may warn, and a `tracing` subscriber may call this function.
    let session = own().as_ref().and_then(|profile| profile.session.clone());
    if let Some(session) = session {
        session.step();
    }
}

/// Starts the session that `start` makes, unless one runs.
///
/// # Errors
///
/// The error of `start`.
pub(crate) fn start(
    start: impl FnOnce() -> Result<Profile, ProfileError>,
) -> Result<(), ProfileError> {
    if is_running() {
        return Ok(());
    }
    // With the lock released: starting may warn, and a `tracing` subscriber may call `step`.
    let started = start()?;
    WAS_STARTED.store(true, Relaxed);
    let mut own = own();
    let surplus = if own.is_none() {
        own.replace(started)
    } else {
        Some(started)
    };
    drop(own);
    drop(surplus);
    Ok(())
}

/// Returns `true` while the session runs.
pub(crate) fn is_running() -> bool {
    own().is_some()
}

/// Returns `true` if the session has run.
pub(crate) fn was_started() -> bool {
    WAS_STARTED.load(Relaxed)
}

/// Ends the session, if it runs.
pub(crate) fn stop() {
    // Drop the session with the lock released: its end calls handlers.
    let ended = own().take();
    drop(ended);
}
