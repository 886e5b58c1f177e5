//! Panics that must not reach the measured program.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::diagnostics;

/// Runs `f` and returns its value. A panic ends here: none may leave a guard's destructor, where a second one would
/// abort the program. `when` says what the profiler was about, for the warning.
pub(crate) fn contained<T>(when: &str, f: impl FnOnce() -> T) -> Option<T> {
    let value = caught(f);
    if value.is_none() {
        diagnostics::warn_once(&format!(
            "the profiler panicked when {when}: measurements may be missing; please report it"
        ));
    }
    value
}

/// Runs code of the program: a logger, a handler, a subscriber. Returns its value; a panic ends here, and so does one
/// in the destructor of its payload.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Drops a value of the program, whose destructor may panic.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // Its destructor may panic as well, and so on without an end: it is never dropped.
        mem::forget(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            std::panic::panic_any(PanicsInDrop);
        }
    }

    #[test]
    fn a_value_is_returned() {
        assert_eq!(contained("a test ran", || 7), Some(7));
    }

    #[test]
    fn a_panic_ends_here_and_is_told_of() {
        let caught = contained("a test panicked", || -> u32 { std::panic::panic_any(1) });
        assert_eq!(caught, None);
        let notices = diagnostics::notices();
        assert!(notices.iter().any(|said| said.contains("a test panicked")));
    }

    #[test]
    fn a_value_that_panics_in_its_drop_ends_here() {
        discard(PanicsInDrop);
        assert_eq!(caught(|| drop(PanicsInDrop)), None);
    }

    #[test]
    fn a_payload_that_panics_in_its_drop_ends_here_too() {
        let panics = || -> u32 { std::panic::panic_any(PanicsInDrop) };
        assert_eq!(contained("a payload was dropped", panics), None);
    }
}
