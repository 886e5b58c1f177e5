//! Calling and dropping what the program gave to the profiler: loggers, handlers, schedules, subscribers.
//!
//! User code may panic, and so may the destructor of a user's value or of a panic's payload. All such calls go through
//! this module, so that no panic reaches the measured program or ends one of the profiler's threads.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls user code. Returns `None` if it panics.
#[inline]
pub fn call<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            drop_value(payload);
            None
        }
    }
}

/// Drops a user's value. Ignores a panic of its destructor.
pub fn drop_value<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The destructor of the payload may panic with a payload that panics in turn, without end: leak it.
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
        assert_eq!(call(|| 7), Some(7));
    }

    #[test]
    fn a_panic_is_caught() {
        assert_eq!(call(|| -> u32 { std::panic::panic_any(1) }), None);
    }

    #[test]
    fn a_value_that_panics_in_its_destructor_is_dropped() {
        drop_value(PanicsInDrop);
        assert_eq!(call(|| drop(PanicsInDrop)), None);
    }

    #[test]
    fn a_payload_that_panics_in_its_destructor_is_dropped() {
        let panics = || -> u32 { std::panic::panic_any(PanicsInDrop) };
        assert_eq!(call(panics), None);
    }
}
