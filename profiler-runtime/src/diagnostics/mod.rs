//! What went wrong, counted and said: nothing is lost silently.

pub(crate) mod contain;
pub(crate) mod printable;

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::process::fork;
use crate::process::output::{Output, Wait};
use crate::sync::ReentrancyGuard;
use crate::sync::{self, Lock};

/// Why a measurement did not reach its logger. Calls and times in the summary are exact all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The thread's ring was full: it logged faster than its loggers took.
    RingFull,
    /// The logger returned an error.
    LoggerFailed,
    /// The logger panicked, now or before; it is not called again for that name.
    LoggerPanicked,
    /// The logger has not returned for seconds; it is not called for that name until it does.
    LoggerBlocked,
    /// The name is logged by its GPU time, and the call had none; the summary says why.
    NoCudaTime,
    /// The profiler's own threads could not be started or have ended after several panics, or the process was ending or
    /// forked from the one that has them.
    NoCollector,
    /// There was no memory for the way to the collector.
    NoMemory,
    /// A thread of the profiler's had it when it panicked: a fault of the profiler's.
    ThreadPanicked,
}

impl DropReason {
    /// All reasons, in the order in which the summary shows them.
    pub const ALL: [Self; 8] = [
        Self::RingFull,
        Self::LoggerFailed,
        Self::LoggerPanicked,
        Self::LoggerBlocked,
        Self::NoCudaTime,
        Self::NoCollector,
        Self::NoMemory,
        Self::ThreadPanicked,
    ];

    /// The reason in words, as the summary shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RingFull => "ring full",
            Self::LoggerFailed => "logger failed",
            Self::LoggerPanicked => "logger panicked",
            Self::LoggerBlocked => "logger blocked",
            Self::NoCudaTime => "no GPU time",
            Self::NoCollector => "no collector",
            Self::NoMemory => "no memory",
            Self::ThreadPanicked => "the profiler's thread panicked",
        }
    }

    /// The reason as a key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::LoggerFailed => "logger_failed",
            Self::LoggerPanicked => "logger_panicked",
            Self::LoggerBlocked => "logger_blocked",
            Self::NoCudaTime => "no_cuda_time",
            Self::NoCollector => "no_collector",
            Self::NoMemory => "no_memory",
            Self::ThreadPanicked => "thread_panicked",
        }
    }
}

/// Counted off the measured threads; those count a full ring in their own cells.
static DROPPED: [AtomicU64; DropReason::ALL.len()] =
    [const { AtomicU64::new(0) }; DropReason::ALL.len()];

pub(crate) fn count_dropped(reason: DropReason, entries: u64) {
    DROPPED[reason as usize].fetch_add(entries, Relaxed);
}

/// What was dropped for a reason, less what stands in the cells of threads.
pub(crate) fn dropped(reason: DropReason) -> u64 {
    DROPPED[reason as usize].load(Relaxed)
}

/// Calls that are in no statistics, since there was no memory for them.
static UNMEASURED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn count_unmeasured() {
    UNMEASURED.fetch_add(1, Relaxed);
}

pub(crate) fn unmeasured() -> u64 {
    UNMEASURED.load(Relaxed)
}

/// How long a full pipe may keep the thread that says something, which may be one of the program's.
const ON_STDERR: Duration = Duration::from_millis(200);

/// Notices stand below the summary too.
const MAX_NOTICES: usize = 64;
static NOTICES: Lock<Vec<Notice>> = Lock::new(Vec::new());

struct Notice {
    message: String,
    on_stderr: bool,
}

fn all_notices() -> MutexGuard<'static, Vec<Notice>> {
    NOTICES.lock()
}

/// Says something once: as a warning of `tracing`, or on standard error in a program that has no
/// subscriber; and below the summary.
pub(crate) fn warn_once(message: &str) {
    // Names and errors of the program stand in it.
    let printable = printable::printable(message);
    let mut message = &*printable;
    // Asked on this thread: a subscriber may be another thread's, or not listen to warnings.
    // It is foreign code, too.
    let is_heard = || tracing::event_enabled!(target: "profiler_runtime", tracing::Level::WARN);
    // A forked child says it below its summary alone: other threads may have held the locks of subscribers, and of what
    // these write to.
    let is_child = fork::is_child();
    let on_stderr = !is_child && !contain::caught(is_heard).unwrap_or(false);
    {
        let _busy = ReentrancyGuard::try_enter();
        let mut notices = all_notices();
        if notices.len() > MAX_NOTICES || notices.iter().any(|said| said.message == message) {
            return;
        }
        if notices.len() == MAX_NOTICES {
            message = "further warnings are not shown";
        }
        notices.push(Notice {
            message: message.to_owned(),
            on_stderr,
        });
    }
    if is_child {
        return;
    }
    // With the lock released: a subscriber is foreign code, which may come back here or panic.
    contain::caught(|| {
        if on_stderr {
            let line = format!("profiler: warning: {message}\n");
            if !is_written(&line) {
                // It stands below the summary, as it would had nothing been tried.
                not_on_stderr(message);
            }
        } else {
            tracing::warn!(target: "profiler_runtime", "{message}");
        }
    });
}

/// Writes a line to standard error. A pipe that was full is waited for again only once it has taken something.
fn is_written(line: &str) -> bool {
    static WAS_FULL: AtomicBool = AtomicBool::new(false);

    let limit = if WAS_FULL.load(Relaxed) {
        Duration::ZERO
    } else {
        ON_STDERR
    };
    let written = Output::stderr(Wait::InAll(limit)).write_whole(line.as_bytes());
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    WAS_FULL.store(written.as_ref().is_err_and(is_full), Relaxed);
    written.is_ok()
}

fn not_on_stderr(message: &str) {
    let mut notices = all_notices();
    let said = notices.iter_mut().find(|said| said.message == message);
    if let Some(said) = said {
        said.on_stderr = false;
    }
}

pub(crate) fn notices() -> Vec<String> {
    let _busy = ReentrancyGuard::try_enter();
    let said = all_notices()
        .iter()
        .map(|notice| notice.message.clone())
        .collect();
    with_abandoned(said, sync::abandoned())
}

/// Adds what a fork has cost this process, which is known only where somebody takes the locks.
fn with_abandoned(mut said: Vec<String>, locks: usize) -> Vec<String> {
    if locks > 0 {
        said.push(format!(
            "this process was forked while other threads held {locks} of the profiler's locks: what these protected is \
             missing here; fork before the threads start, or measure in one of the two processes"
        ));
    }
    said
}

/// Whether a notice went to standard error when it was said.
pub(crate) fn is_on_stderr(message: &str) -> bool {
    all_notices()
        .iter()
        .any(|notice| notice.on_stderr && notice.message == message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_said_once() {
        warn_once("health: said twice");
        warn_once("health: said twice");
        assert_eq!(
            notices()
                .iter()
                .filter(|said| *said == "health: said twice")
                .count(),
            1
        );
    }

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
