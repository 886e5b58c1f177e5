//! Runs loggers under watch: contains their panics, and gives up on a call that does not return.

use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use profiler_host::diagnostics;
use profiler_host::diagnostics::user_code;
use profiler_host::sync::Lock;
use profiler_log::{LogError, Logger};

use super::takeover::{Ended, Takeover};
use crate::clock::clock;
use crate::name::{self, CircuitBreaker};

/// How long a call may take before it counts as blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
/// How many threads may be lost to blocked loggers; with that many nothing is logged until one returns.
const MAX_BLOCKED: usize = 8;

static BLOCKED: AtomicUsize = AtomicUsize::new(0);
/// Entries passed to loggers that have not returned.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Shared loggers that have not returned. No worker calls one of them, for any name.
static STUCK: Lock<Vec<Logger>> = Lock::new(Vec::new());

/// Returns how many entries are held by loggers that have not returned.
pub(super) fn held() -> u64 {
    HELD.load(Relaxed)
}

/// Returns how many calls have not returned.
pub(super) fn blocked() -> usize {
    BLOCKED.load(Relaxed)
}

/// Returns `true` if a call of this shared logger has not returned.
pub(super) fn is_stuck(logger: &Logger) -> bool {
    STUCK.lock().iter().any(|stuck| stuck.is_same(logger))
}

/// A call of user code: which logger it calls, and for which name.
pub(super) struct CallInfo {
    pub(super) id: u32,
    pub(super) breaker: &'static CircuitBreaker,
    /// The logger, if several calls share it.
    pub(super) logger: Option<Logger>,
    /// How many entries the logger gets with the call: one, or none when it is flushed.
    pub(super) entries: u64,
}

/// The result of a call of user code.
pub(super) struct CallOutcome<T> {
    /// The returned value; `None` if the call panicked.
    pub(super) result: Option<T>,
    /// `true` if the worker still owns the queue; the call took too long otherwise.
    pub(super) is_owner: bool,
}

/// The state of one worker, as its supervisor sees it.
#[derive(Default)]
pub(super) struct Watchdog {
    call: Takeover<CallInfo>,
    /// The flush that the worker is executing; zero for none.
    pub(super) flush_id: AtomicU64,
    /// `true` while the worker has an entry whose outcome is not recorded. Only the worker uses it.
    pub(super) has_entry: AtomicBool,
}

/// A worker that another one has to take over from.
pub(super) struct TimedOut {
    id: Option<u32>,
    blocked: usize,
    /// The flush that the worker was executing; zero for none.
    pub(super) flush_id: u64,
}

impl Watchdog {
    /// Runs user code under watch, and contains its panics.
    ///
    /// If `f` returns `None`, it has contained a panic itself.
    pub(super) fn run<T>(&self, call: CallInfo, f: impl FnOnce() -> Option<T>) -> CallOutcome<T> {
        let (id, breaker) = (call.id, call.breaker);
        self.call.begin(call, clock().ticks());
        let result = user_code::call(f).flatten();
        let is_owner = self.end_call();
        if result.is_none() {
            breaker.open_permanently();
            diagnostics::warn_once(&format!(
                "the logger of `{}` panicked: it is not called again for it, and its entries are \
                 counted as dropped",
                name_of(Some(id))
            ));
        }
        CallOutcome { result, is_owner }
    }

    /// Ends the call that the worker is in, if any: it returned, or the profiler itself panicked. Returns `false` if
    /// another worker has taken over.
    pub(super) fn end_call(&self) -> bool {
        let Ended { is_owner, call } = self.call.end();
        if !is_owner {
            unblock(call.as_ref());
        }
        // It may hold the last handle to the logger, whose destructor is user code.
        user_code::drop_value(call);
        is_owner
    }

    /// Takes the queue from the worker if its call takes too long.
    pub(super) fn time_out_if_blocked(&self) -> Option<TimedOut> {
        self.time_out_after(BLOCKED_AFTER)
    }

    fn time_out_after(&self, limit: Duration) -> Option<TimedOut> {
        let since = self.call.since()?;
        let age = clock().nanoseconds(clock().ticks().saturating_sub(since) as f64);
        if age < limit.as_nanos() as f64 || blocked() >= MAX_BLOCKED {
            return None;
        }
        self.call.take_over(since, |call| TimedOut {
            id: call.map(|call| call.id),
            blocked: block(call),
            flush_id: self.flush_id.load(Relaxed),
        })
    }
}

/// Records a call as blocked: no worker calls its logger again until it returns. Returns how many are blocked now.
fn block(call: Option<&CallInfo>) -> usize {
    if let Some(call) = call {
        HELD.fetch_add(call.entries, Relaxed);
        match call.logger.as_ref().and_then(Logger::share) {
            Some(logger) => STUCK.lock().push(logger),
            None => call.breaker.open_until_return(),
        }
    }
    BLOCKED.fetch_add(1, Relaxed) + 1
}

/// Undoes [`block`] for a call that has returned after all.
fn unblock(call: Option<&CallInfo>) {
    BLOCKED.fetch_sub(1, Relaxed);
    let Some(call) = call else { return };
    HELD.fetch_sub(call.entries, Relaxed);
    call.breaker.close_after_return();
    if let Some(logger) = &call.logger {
        STUCK.lock().retain(|stuck| !stuck.is_same(logger));
    }
}

impl TimedOut {
    /// Warns of the blocked logger. Call it with no lock held: the warning may reach user code.
    pub(super) fn warn(&self) {
        diagnostics::warn_once(&format!(
            "the logger of `{}` has not returned for {} s: its entries are dropped and counted until \
             it does; the others go on",
            name_of(self.id),
            BLOCKED_AFTER.as_secs()
        ));
        if self.blocked == MAX_BLOCKED {
            diagnostics::warn_once(&format!(
                "{MAX_BLOCKED} loggers have not returned: should another one not, nothing is logged \
                 until one does"
            ));
        }
    }
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
    let name = name_of(Some(id));
    diagnostics::warn_once(&format!("the logger of `{name}` failed: {error}"));
}

fn name_of(id: Option<u32>) -> &'static str {
    id.and_then(name::by_id).map_or("?", |name| &name.text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use profiler_log::{IntoLogger, TracingLogger};
    use profiler_report::DropReason;

    fn call(breaker: &'static CircuitBreaker, logger: Option<Logger>) -> CallInfo {
        CallInfo {
            id: u32::MAX,
            breaker,
            logger,
            entries: 1,
        }
    }

    fn breaker() -> &'static CircuitBreaker {
        Box::leak(Box::default())
    }

    #[test]
    fn a_call_that_returns_in_time_is_left_alone() {
        let (watchdog, breaker) = (Watchdog::default(), breaker());
        let outcome = watchdog.run(call(breaker, None), || {
            assert!(watchdog.time_out_if_blocked().is_none());
            Some(3)
        });
        assert_eq!((outcome.result, outcome.is_owner), (Some(3), true));
        assert!(watchdog.time_out_after(Duration::ZERO).is_none());
        assert_eq!(breaker.drop_reason(), None);
    }

    #[test]
    fn a_call_that_panics_opens_the_breaker() {
        let (watchdog, breaker) = (Watchdog::default(), breaker());
        let outcome: CallOutcome<()> = watchdog.run(call(breaker, None), || {
            std::panic::panic_any("a test panics");
        });
        assert!(outcome.result.is_none() && outcome.is_owner);
        assert_eq!(breaker.drop_reason(), Some(DropReason::LoggerPanicked));
    }

    #[test]
    fn a_blocked_call_loses_the_queue_and_opens_the_breaker_until_it_returns() {
        let (watchdog, breaker) = (Watchdog::default(), breaker());
        watchdog.flush_id.store(9, Relaxed);
        let outcome = watchdog.run(call(breaker, None), || {
            let timed_out = watchdog.time_out_after(Duration::ZERO);
            assert_eq!(timed_out.map(|timed_out| timed_out.flush_id), Some(9));
            assert_eq!(breaker.drop_reason(), Some(DropReason::LoggerBlocked));
            assert!(held() >= 1 && blocked() >= 1);
            Some(())
        });
        assert!(!outcome.is_owner);
        assert_eq!(breaker.drop_reason(), None);
    }

    #[test]
    fn a_blocked_shared_logger_is_stuck_for_all_names() {
        let (watchdog, breaker) = (Watchdog::default(), breaker());
        let shared = Arc::new(LogFnWithSize(7));
        let logger = || Arc::clone(&shared).into_logger();
        let outcome = watchdog.run(call(breaker, logger().share()), || {
            assert!(watchdog.time_out_after(Duration::ZERO).is_some());
            assert!(is_stuck(&logger()) && !is_stuck(&TracingLogger.into_logger()));
            assert_eq!(
                breaker.drop_reason(),
                None,
                "the other loggers of the name are called"
            );
            Some(())
        });
        assert!(!outcome.is_owner && !is_stuck(&logger()));
    }

    /// A logger with an address of its own.
    struct LogFnWithSize(u8);

    impl profiler_log::ScalarLogger for LogFnWithSize {
        fn add_scalar(&self, _: &str, _: f64, _: u64) -> Result<(), profiler_log::LogError> {
            assert_eq!(self.0, 7);
            Ok(())
        }
    }
}
