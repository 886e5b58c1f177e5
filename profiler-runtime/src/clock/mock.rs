//! A clock that a test sets.

use std::cell::Cell;

thread_local! {
    static TICKS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Replaces the clock on the current thread until it is dropped: ticks advance only when the test says so, and reading
/// the clock costs none.
pub(crate) struct MockClock(());

impl MockClock {
    /// Stops the clock of this thread at `ticks`.
    pub(crate) fn at(ticks: u64) -> Self {
        TICKS.set(Some(ticks));
        Self(())
    }

    /// Advances the clock.
    #[allow(
        clippy::unused_self,
        reason = "only a test that has replaced the clock sets it"
    )]
    pub(crate) fn advance(&self, ticks: u64) {
        TICKS.set(TICKS.get().map(|now| now + ticks));
    }
}

impl Drop for MockClock {
    fn drop(&mut self) {
        TICKS.set(None);
    }
}

/// Returns the ticks that the test has set on this thread, if any.
pub(super) fn ticks() -> Option<u64> {
    TICKS.get()
}
