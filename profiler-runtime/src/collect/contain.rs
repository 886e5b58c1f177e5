//! Calls of user code that may panic or fail, and the warnings of both.

use std::collections::HashSet;
use std::mem::ManuallyDrop;

use profiler_host::diagnostics;
use profiler_host::diagnostics::user_code;
use profiler_host::sync::Lock;
use profiler_log::LogError;

use crate::name::{self, CircuitBreaker};

/// Runs user code, and contains its panics: the logger of this breaker is not called again then. `id` is the number of the
/// name that the warning mentions.
///
/// If `f` returns `None`, it has contained a panic itself.
pub(super) fn contain<T>(
    id: u32,
    breaker: &CircuitBreaker,
    f: impl FnOnce() -> Option<T>,
) -> Option<T> {
    let result = user_code::call(f).flatten();
    if result.is_none() {
        breaker.open();
        diagnostics::warn_once(&format!(
            "the logger of `{}` panicked: it is not called again for it, and its entries are counted as dropped",
            name_of(id)
        ));
    }
    result
}

/// Formats the error inside the contained call: its `Display` may be user code.
pub(super) fn to_text(result: Result<(), LogError>) -> Result<(), String> {
    result.map_err(|error| {
        // Leaked if `to_string` panics: its destructor could panic during that panic, which aborts the process.
        let error = ManuallyDrop::new(error);
        let text = error.to_string();
        drop(ManuallyDrop::into_inner(error));
        text
    })
}

/// Warns once for each kind of failure; how often it happened is counted.
pub(super) fn warn_of_failure(id: u32, error: &str) {
    static WARNED: Lock<Option<HashSet<String>>> = Lock::new(None);
    const MAX_WARNED: usize = 64;
    let mut warned = WARNED.lock();
    let errors = warned.get_or_insert_default();
    if errors.len() >= MAX_WARNED || !errors.insert(error.to_owned()) {
        return;
    }
    drop(warned);
    let name = name_of(id);
    diagnostics::warn_once(&format!("the logger of `{name}` failed: {error}"));
}

/// Returns the text of a name, for a warning.
pub(super) fn name_of(id: u32) -> &'static str {
    name::by_id(id).map_or("?", |name| &name.text)
}

#[cfg(test)]
mod tests {
    use profiler_report::DropReason;

    use super::*;

    #[test]
    fn a_call_that_panics_opens_the_breaker() {
        let breaker = CircuitBreaker::new();
        assert_eq!(contain(u32::MAX, &breaker, || Some(3)), Some(3));
        assert_eq!(breaker.drop_reason(), None);
        let panics = || -> Option<u32> { std::panic::panic_any("a test panics") };
        assert_eq!(contain(u32::MAX, &breaker, panics), None);
        assert_eq!(breaker.drop_reason(), Some(DropReason::LoggerPanicked));
    }
}
