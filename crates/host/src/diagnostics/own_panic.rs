//! Panics of the profiler's own code, which are bugs in it.

use super::{user_code, warn_once};

/// Runs the profiler's own code. Returns `None` if it panics, and warns that this is a bug in the profiler.
///
/// Destructors of guards run their work in here: a panic that left one during unwinding would abort the program. `when`
/// names that work for the warning: "the profiler panicked when …".
#[inline]
pub fn catch_own_panic<T>(when: &str, f: impl FnOnce() -> T) -> Option<T> {
    let value = user_code::call(f);
    if value.is_none() {
        warn_of_own_panic(when);
    }
    value
}

/// Warns that the profiler panicked.
pub fn warn_of_own_panic(when: &str) {
    warn_once(&format!(
        "the profiler panicked when {when}: measurements may be missing; please report it"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::notices;

    #[test]
    fn a_value_is_returned() {
        assert_eq!(catch_own_panic("a test ran", || 7), Some(7));
    }

    #[test]
    fn a_panic_is_caught_and_warned_of() {
        let caught = catch_own_panic("a test panicked", || -> u32 { std::panic::panic_any(1) });
        assert_eq!(caught, None);
        assert!(
            notices()
                .iter()
                .any(|notice| notice.contains("a test panicked"))
        );
    }
}
