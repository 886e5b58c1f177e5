//! The public functions that turn measuring on and off.

use super::ensure_started;
use crate::clock;
use crate::switch;

/// Turns measuring on or off, at once on all threads.
///
/// A scope that is open at that moment ends as it began: it is measured to its end, or not at all. Off, a measured call
/// costs one relaxed load and a branch. The initial state is that of the variable `PROFILER_ENABLED`, or on.
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
pub fn set_enabled(enabled: bool) {
    ensure_started();
    switch::set_enabled(enabled);
    if enabled && !cfg!(feature = "strip") {
        clock::warn_if_fallback();
    }
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
