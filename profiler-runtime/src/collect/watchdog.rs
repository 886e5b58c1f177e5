//! Foreign code under watchdog: panics contained, and a call that does not return given up.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use crate::clock::clock;
use crate::diagnostics;
use crate::diagnostics::user_code;
use crate::log::Logger;
use crate::name::{self, CircuitBreaker};
use crate::sync::Lock;

/// A call that takes longer is taken for blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
/// Threads given up to blocked loggers; after that nothing is logged until one returns.
const MAX_BLOCKED: usize = 8;

static BLOCKED: AtomicUsize = AtomicUsize::new(0);
/// Entries in the hands of loggers that have not returned.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Shared loggers that have not returned. None is called by another worker, whatever the name.
static STUCK: Lock<Vec<Logger>> = Lock::new(Vec::new());

/// How many entries are in the hands of loggers that have not returned.
pub(super) fn held() -> u64 {
    HELD.load(Relaxed)
}

/// How many calls have not returned.
pub(super) fn blocked() -> usize {
    BLOCKED.load(Relaxed)
}

pub(super) fn is_stuck(logger: &Logger) -> bool {
    STUCK.lock().iter().any(|stuck| stuck.is_same(logger))
}

/// A foreign call: for which name, with which breaker; and the logger, if it is shared by calls.
pub(super) struct CallInfo {
    pub(super) id: u32,
    pub(super) breaker: &'static CircuitBreaker,
    pub(super) logger: Option<Logger>,
    /// How many entries the logger gets with it: one, or none where it is flushed.
    pub(super) entries: u64,
}

/// What came of foreign code.
pub(super) struct Outcome<T> {
    /// What it returned; none where it panicked.
    pub(super) result: Option<T>,
    /// Whether this worker is still the one: the call took too long otherwise.
    pub(super) on: bool,
}

/// What can be seen of a worker from outside.
#[derive(Default)]
pub(super) struct Watchdog {
    /// When the foreign call it is in began, in ticks; zero while it is in none, and [`TIMED_OUT`] when
    /// another worker has taken over. Each change is one exchange, so that both sides agree on it.
    since: AtomicU64,
    call: Lock<Option<CallInfo>>,
    /// The flush it is in the middle of; zero for none.
    pub(super) flush_id: AtomicU64,
    /// Whether it has an entry whose outcome is not noted.
    pub(super) has_entry: AtomicBool,
}

const TIMED_OUT: u64 = u64::MAX;

/// A worker that another one is to take over from.
pub(super) struct TimedOut {
    id: Option<u32>,
    blocked: usize,
    /// The flush it was in the middle of; zero for none.
    pub(super) flush_id: u64,
}

impl Watchdog {
    /// Runs foreign code: watched, and with panics contained.
    ///
    /// None from `call` says that it has contained one itself.
    pub(super) fn run<T>(&self, call: CallInfo, f: impl FnOnce() -> Option<T>) -> Outcome<T> {
        let (id, breaker) = (call.id, call.breaker);
        *self.call.lock() = Some(call);
        self.since.store(clock().ticks(), Release);
        let result = user_code::call(f).flatten();
        let on = self.since.swap(0, AcqRel) != TIMED_OUT;
        // Waits until whoever gave it up has said all of it.
        let call = self.call.lock().take();
        if !on {
            take_back(call.as_ref());
        }
        // The last handle to a logger may go with it, and its destructor is foreign too.
        user_code::drop_value(call);
        if result.is_none() {
            breaker.open_permanently();
            diagnostics::warn_once(&format!(
                "the logger of `{}` panicked: it is not called again for it, and its entries are \
                 counted as dropped",
                name_of(Some(id))
            ));
        }
        Outcome { result, on }
    }

    /// Leaves the call that a panic of the profiler's own has left open, if any; false where another worker has taken
    /// over meanwhile.
    pub(super) fn leave_call(&self) -> bool {
        let on = self.since.swap(0, AcqRel) != TIMED_OUT;
        let call = self.call.lock().take();
        if !on {
            take_back(call.as_ref());
        }
        // Its destructor may be foreign code.
        user_code::drop_value(call);
        on
    }

    /// Gives the worker up if its call takes too long.
    pub(super) fn time_out_if_blocked(&self) -> Option<TimedOut> {
        let since = self.since.load(Relaxed);
        let age = clock().nanoseconds(clock().ticks().saturating_sub(since) as f64);
        if since == 0 || age < BLOCKED_AFTER.as_nanos() as f64 || blocked() >= MAX_BLOCKED {
            return None;
        }
        // Held until all of it is said: the worker may come back right now.
        let call = self.call.lock();
        self.since
            .compare_exchange(since, TIMED_OUT, AcqRel, Relaxed)
            .ok()?;
        let blocked = BLOCKED.fetch_add(1, Relaxed) + 1;
        if let Some(CallInfo {
            breaker,
            logger,
            entries,
            ..
        }) = call.as_ref()
        {
            HELD.fetch_add(*entries, Relaxed);
            match logger.as_ref().and_then(Logger::share) {
                Some(logger) => STUCK.lock().push(logger),
                None => breaker.open_until_return(),
            }
        }
        let id = call.as_ref().map(|call| call.id);
        Some(TimedOut {
            id,
            blocked,
            flush_id: self.flush_id.load(Relaxed),
        })
    }
}

/// A call that was given up came back after all.
fn take_back(call: Option<&CallInfo>) {
    BLOCKED.fetch_sub(1, Relaxed);
    let Some(CallInfo {
        breaker,
        logger,
        entries,
        ..
    }) = call
    else {
        return;
    };
    HELD.fetch_sub(*entries, Relaxed);
    breaker.close_after_return();
    if let Some(logger) = logger {
        STUCK.lock().retain(|stuck| !stuck.is_same(logger));
    }
}

impl TimedOut {
    /// Says it, with no lock held: whoever listens is foreign code.
    pub(super) fn say(&self) {
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

fn name_of(id: Option<u32>) -> &'static str {
    id.and_then(name::by_id).map_or("?", |name| &name.text)
}
