//! The circuit breaker of a logger.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use profiler_report::DropReason;

/// Decides whether a logger is called, for one name or for all names (default loggers).
///
/// | state | the logger is called | left by |
/// |---|---|---|
/// | `CLOSED` | yes | a call that blocks, or panics |
/// | `OPEN_UNTIL_RETURN` | no: it has not returned from a call | its return, or a panic |
/// | `OPEN` | no: it panicked | nothing |
///
/// The state carries no other data, so relaxed accesses suffice. The transitions between the first two states compare
/// and exchange: a logger that returns late does not leave `OPEN`.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker(AtomicU8);

impl CircuitBreaker {
    const CLOSED: u8 = 0;
    const OPEN_UNTIL_RETURN: u8 = 1;
    const OPEN: u8 = 2;

    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(Self::CLOSED))
    }

    /// Returns why entries for the logger are dropped now, or `None` if the logger is called.
    pub(crate) fn drop_reason(&self) -> Option<DropReason> {
        match self.0.load(Relaxed) {
            Self::CLOSED => None,
            Self::OPEN => Some(DropReason::LoggerPanicked),
            _ => Some(DropReason::LoggerBlocked),
        }
    }

    /// Stops calls of a logger that does not return, until [`close_after_return`](Self::close_after_return).
    pub(crate) fn open_until_return(&self) {
        self.exchange(Self::CLOSED, Self::OPEN_UNTIL_RETURN);
    }

    /// Allows calls of a logger that has returned after all.
    pub(crate) fn close_after_return(&self) {
        self.exchange(Self::OPEN_UNTIL_RETURN, Self::CLOSED);
    }

    /// Stops calls of a logger that panicked, until the end of the process.
    pub(crate) fn open_permanently(&self) {
        self.0.store(Self::OPEN, Relaxed);
    }

    fn exchange(&self, from: u8, to: u8) {
        // On failure the logger is in another state, which stays.
        let _ = self.0.compare_exchange(from, to, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_logger_is_called_again_after_its_return() {
        let breaker = CircuitBreaker::new();
        assert_eq!(breaker.drop_reason(), None);
        breaker.open_until_return();
        assert_eq!(breaker.drop_reason(), Some(DropReason::LoggerBlocked));
        breaker.close_after_return();
        assert_eq!(breaker.drop_reason(), None);
    }

    #[test]
    fn a_logger_that_panicked_is_never_called_again() {
        let breaker = CircuitBreaker::new();
        breaker.open_until_return();
        breaker.open_permanently();
        breaker.close_after_return();
        breaker.open_until_return();
        assert_eq!(breaker.drop_reason(), Some(DropReason::LoggerPanicked));
    }
}
