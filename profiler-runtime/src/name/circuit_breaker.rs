//! The circuit breaker of a logger.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_report::DropReason;

/// Decides whether a logger is called, for one name or for all names (default loggers): it is until it panics.
///
/// The state carries no other data, so relaxed accesses suffice.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker(AtomicBool);

impl CircuitBreaker {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Returns why entries for the logger are dropped now, or `None` if the logger is called.
    pub(crate) fn drop_reason(&self) -> Option<DropReason> {
        self.0.load(Relaxed).then_some(DropReason::LoggerPanicked)
    }

    /// Stops calls of a logger that panicked, until the end of the process.
    pub(crate) fn open(&self) {
        self.0.store(true, Relaxed);
    }
}
