//! The public functions that turn measuring on and off.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::diagnostics;

use super::ensure_started;
use crate::clock;
use crate::cuda;
use crate::name::SourceLocation;
use crate::switch;

/// Turns measuring on or off, at once on all threads.
///
/// A scope that is open at that moment ends as it began: it is measured to its end, or not at all. Off, a measured call
/// costs one relaxed load and a branch. The initial state is that of the variable `PROFILER_ENABLED`, or on. A call that
/// sets the opposite of what the variable asks for is reported in a warning.
///
/// With the feature `strip` measuring is always off.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{is_enabled, set_enabled};
///
/// set_enabled(false);
/// assert!(!is_enabled());
/// ```
#[track_caller]
pub fn set_enabled(enabled: bool) {
    ensure_started();
    if switch::set_enabled(enabled) && !switch::NEVER_MEASURES {
        warn_of_override(enabled, Location::caller());
    }
    if enabled && !switch::NEVER_MEASURES {
        clock::warn_if_fallback();
        cuda::nvml::begin(None);
        #[cfg(feature = "trace")]
        super::environment::start_deferred();
    }
}

/// Warns, once for on and once for off, that the program overrides `PROFILER_ENABLED`.
#[cold]
fn warn_of_override(enabled: bool, caller: &'static Location<'static>) {
    static WARNED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    if WARNED[usize::from(enabled)].swap(true, Relaxed) {
        return;
    }
    let effect = if enabled {
        "PROFILER_ENABLED turns measuring off, but the program turns it on with `set_enabled(true)`"
    } else {
        "PROFILER_ENABLED turns measuring on, but the program turns it off with `set_enabled(false)`"
    };
    let place = SourceLocation::from(caller).in_files();
    diagnostics::warn_once(&format!(
        "{effect} ({place}): the call takes precedence; remove it to let the variable decide"
    ));
}

/// Returns `true` while calls are measured: the switch is on, and no [`pause`] is running.
///
/// # Examples
///
/// ```
/// profiler_runtime::pause(|| assert!(!profiler_runtime::is_enabled()));
/// ```
#[must_use]
pub fn is_enabled() -> bool {
    if !switch::is_initialized() {
        ensure_started();
    }
    switch::is_enabled()
}

/// Runs `f` with measuring off on all threads, until `f` returns or panics.
///
/// Nested and simultaneous bypasses add up: measuring continues when the last one ends. To leave out single calls, use
/// the attribute's argument `bypass`.
///
/// # Examples
///
/// ```
/// let warm = profiler_runtime::pause(|| 6 * 7);
/// assert_eq!(warm, 42);
/// ```
pub fn pause<T>(f: impl FnOnce() -> T) -> T {
    ensure_started();
    switch::pause(f)
}
