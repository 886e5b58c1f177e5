//! Calls one logger with one entry.
//!
//! A logger that returns an error is counted. One that panics is contained and not called again for that name.

use profiler_host::diagnostics::user_code;
use profiler_log::{Logger, Scalar};
use profiler_report::DropReason;

use super::contain::{contain, to_text, warn_of_failure};
use super::entry::{LogEntry, Recipient};
use super::ledger;
use super::unflushed::{self, Unflushed};

/// Calls a logger with an entry, and records the outcome. Returns a logger that has to be
/// [flushed for the last time](unflushed::flush_for_the_last_time) now, if there is one.
#[must_use]
pub(super) fn deliver(entry: &LogEntry, recipient: Recipient) -> Option<Unflushed> {
    let Recipient { logger, breaker } = recipient;
    if let Some(reason) = breaker.drop_reason() {
        // This may be the last handle, and its destructor is user code.
        user_code::drop_value(logger);
        ledger::resolve(Err(reason));
        return None;
    }
    let id = entry.name.id;
    let mut oldest = None;
    let result = contain(id, breaker, || {
        let taken = add(&logger, &entry.scalar());
        if matches!(taken, Some(Ok(()))) && logger.is_shared() {
            oldest = unflushed::remember(id, Recipient { logger, breaker });
        } else {
            user_code::drop_value(logger);
        }
        taken
    });
    ledger::resolve(match &result {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(DropReason::LoggerFailed),
        None => Err(DropReason::LoggerPanicked),
    });
    if let Some(Err(error)) = result {
        warn_of_failure(id, &error);
    }
    oldest
}

/// Calls the logger, and flushes it if it belongs to this call alone. Returns `None` if it panics.
///
/// The logger outlives the panic: if unwinding dropped it, a second panic would abort the process.
fn add(logger: &Logger, scalar: &Scalar<'_>) -> Option<Result<(), String>> {
    user_code::call(|| {
        let taken = logger.as_dyn().add(scalar);
        to_text(if logger.is_shared() {
            taken
        } else {
            taken.and_then(|()| logger.as_dyn().flush())
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::SystemTime;

    use profiler_host::diagnostics;

    use super::*;
    use crate::name::{self, CircuitBreaker};
    use profiler_log::{IntoLogger, LogError, ScalarLogger};

    /// Counts its calls and returns the configured outcome.
    struct Obeys {
        order: fn() -> Result<(), LogError>,
        calls: AtomicU32,
        flushes: AtomicU32,
    }

    impl ScalarLogger for Obeys {
        fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
            assert_eq!((tag, step), ("deliver: entry/cpu_ms", 3));
            assert!((value - 1.5).abs() < 1e-9);
            self.calls.fetch_add(1, Relaxed);
            (self.order)()
        }

        fn flush(&self) -> Result<(), LogError> {
            self.flushes.fetch_add(1, Relaxed);
            Ok(())
        }
    }

    /// A logger of one call, whose calls another one counts.
    struct Forwards(Arc<Obeys>);

    impl ScalarLogger for Forwards {
        fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
            self.0.add_scalar(tag, value, step)
        }

        fn flush(&self) -> Result<(), LogError> {
            self.0.flush()
        }
    }

    fn obeys(order: fn() -> Result<(), LogError>) -> Arc<Obeys> {
        Arc::new(Obeys {
            order,
            calls: AtomicU32::new(0),
            flushes: AtomicU32::new(0),
        })
    }

    fn deliver_to(logger: Logger, breaker: &'static CircuitBreaker) {
        let entry = LogEntry {
            name: name::declared("deliver: entry", std::panic::Location::caller()),
            milliseconds: 1.5,
            cpu_ms: 1.5,
            cuda: None,
            step: 3,
            wall_time: SystemTime::UNIX_EPOCH,
        };
        ledger::add_pending(1);
        assert!(deliver(&entry, Recipient { logger, breaker }).is_none());
    }

    fn breaker() -> &'static CircuitBreaker {
        Box::leak(Box::default())
    }

    #[test]
    fn a_shared_logger_is_kept_for_the_next_flush() {
        let (logger, before) = (obeys(|| Ok(())), ledger::taken());
        deliver_to(Arc::clone(&logger).into_logger(), breaker());
        assert_eq!(logger.calls.load(Relaxed), 1);
        assert!(ledger::taken() > before);
        assert!(unflushed::holds(&logger.into_logger()));
    }

    #[test]
    fn a_logger_of_one_call_is_flushed_at_once() {
        let logger = obeys(|| Ok(()));
        let owned: Box<dyn ScalarLogger> = Box::new(Forwards(Arc::clone(&logger)));
        deliver_to(owned.into_logger(), breaker());
        assert_eq!(logger.flushes.load(Relaxed), 1);
    }

    #[test]
    fn an_error_is_counted_and_the_logger_is_called_again() {
        let (logger, breaker) = (obeys(|| Err(LogError::other("full"))), breaker());
        let before = crate::losses::dropped(DropReason::LoggerFailed);
        for _ in 0..2 {
            deliver_to(Arc::clone(&logger).into_logger(), breaker);
        }
        assert_eq!(logger.calls.load(Relaxed), 2);
        assert!(crate::losses::dropped(DropReason::LoggerFailed) >= before + 2);
        let said = diagnostics::notices();
        let said = said.iter().filter(|said| said.ends_with("failed: full"));
        assert_eq!(said.count(), 1);
    }

    #[test]
    fn a_logger_that_panics_is_not_called_again() {
        let (logger, breaker) = (obeys(|| std::panic::panic_any("a test panics")), breaker());
        let before = crate::losses::dropped(DropReason::LoggerPanicked);
        for _ in 0..3 {
            deliver_to(Arc::clone(&logger).into_logger(), breaker);
        }
        assert_eq!(logger.calls.load(Relaxed), 1);
        assert!(crate::losses::dropped(DropReason::LoggerPanicked) >= before + 3);
    }
}
