//! Calls one logger with one entry.
//!
//! A logger that returns an error is counted. One that panics is contained and not called again for that name. One
//! that does not return is left to its thread: another worker takes over, and the logger is not called until the call
//! returns.

use profiler_host::diagnostics::user_code;
use profiler_log::{Logger, Scalar};
use profiler_report::DropReason;

use super::entry::{LogEntry, Recipient};
use super::watchdog::{CallInfo, CallOutcome, Watchdog, is_stuck, to_text, warn_of_failure};
use super::{ledger, unflushed};

/// Calls a logger with an entry. Returns `false` if another worker has taken over during the call.
pub(super) fn deliver(watchdog: &Watchdog, entry: &LogEntry, recipient: Recipient) -> bool {
    let Recipient { logger, breaker } = recipient;
    let id = entry.name.id;
    let stuck = || is_stuck(&logger).then_some(DropReason::LoggerBlocked);
    let refusal = breaker.drop_reason().or_else(stuck);
    let call = CallInfo {
        id,
        breaker,
        logger: logger.share(),
        entries: 1,
    };
    let mut oldest = None;
    let CallOutcome { result, is_owner } = watchdog.run(call, || {
        if refusal.is_some() {
            // Under watch as well: this may be the last handle, and its destructor is user code.
            user_code::drop_value(logger);
            return Some(Ok(()));
        }
        let taken = add(&logger, &entry.scalar());
        if matches!(taken, Some(Ok(()))) && logger.share().is_some() {
            oldest = unflushed::remember(id, Recipient { logger, breaker });
        } else {
            user_code::drop_value(logger);
        }
        taken
    });
    ledger::resolve(match (refusal, &result) {
        (Some(reason), _) => Err(reason),
        (None, Some(Ok(()))) => Ok(()),
        (None, Some(Err(_))) => Err(DropReason::LoggerFailed),
        (None, None) => Err(DropReason::LoggerPanicked),
    });
    if let Some(Err(error)) = result {
        warn_of_failure(id, &error);
    }
    // A call of its own: what this other logger does is not held against the one above.
    match oldest {
        Some(oldest) => unflushed::flush_for_the_last_time(watchdog, is_owner, oldest),
        None => is_owner,
    }
}

/// Calls the logger, and flushes it if it belongs to this call alone. Returns `None` if it panics.
///
/// The logger outlives the panic: if unwinding dropped it, a second panic would abort the process.
fn add(logger: &Logger, scalar: &Scalar<'_>) -> Option<Result<(), String>> {
    user_code::call(|| {
        let taken = logger.as_dyn().add(scalar);
        let is_shared = logger.share().is_some();
        to_text(if is_shared {
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
        assert!(deliver(
            &Watchdog::default(),
            &entry,
            Recipient { logger, breaker }
        ));
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
