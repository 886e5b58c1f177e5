//! Counts of what was not measured or did not reach its logger.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::warn_once;

/// Why a logged call did not reach its logger. The summary counts the call and its time all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The ring of the thread was full: it logged faster than its loggers processed.
    RingFull,
    /// The logger returned an error.
    LoggerFailed,
    /// The logger panicked, for this entry or an earlier one. It is not called again for that name.
    LoggerPanicked,
    /// The logger has not returned for seconds. Until it returns, a shared logger is not called for any name, and a logger
    /// of a single call not for its name.
    LoggerBlocked,
    /// The name is logged by its GPU time, and the call had none. The summary says why.
    NoCudaTime,
    /// The profiler's threads could not be started or have ended after several panics, or the process was ending or is
    /// a forked child, which has no such threads.
    NoCollector,
    /// The call ended inside the profiler: in a measured allocator that the profiler allocates from, or in the
    /// destructor of a logger.
    Reentrant,
    /// There was no memory for the thread's ring.
    NoMemory,
    /// One of the profiler's threads panicked, a bug in the profiler, while it held the entry.
    ThreadPanicked,
}

impl DropReason {
    /// All reasons, in the order in which the summary shows them.
    pub const ALL: [Self; 9] = [
        Self::RingFull,
        Self::LoggerFailed,
        Self::LoggerPanicked,
        Self::LoggerBlocked,
        Self::NoCudaTime,
        Self::NoCollector,
        Self::Reentrant,
        Self::NoMemory,
        Self::ThreadPanicked,
    ];

    /// Returns the reason in words, as the summary shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RingFull => "ring full",
            Self::LoggerFailed => "logger failed",
            Self::LoggerPanicked => "logger panicked",
            Self::LoggerBlocked => "logger blocked",
            Self::NoCudaTime => "no GPU time",
            Self::NoCollector => "no collector",
            Self::Reentrant => "re-entrant call",
            Self::NoMemory => "no memory",
            Self::ThreadPanicked => "the profiler's thread panicked",
        }
    }

    /// Returns what to do about it, as the summary and the warning of the first dropped entry show it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::RingFull => {
                "raise PROFILER_RING, log fewer calls with `log_every`, or use a faster logger"
            }
            Self::LoggerFailed => "a warning has its error",
            Self::LoggerPanicked => "fix the panic, or leave the logger out",
            Self::LoggerBlocked => {
                "have the logger return within two seconds: let it pass slow work to a thread of the program"
            }
            Self::NoCudaTime => {
                "the first logged call had a GPU time, and a CPU time among GPU times would mislead: name the stream of \
                 each call, and see the reasons for missing GPU times"
            }
            Self::NoCollector => {
                "log before the process forks or ends, and see the warnings about the profiler's threads"
            }
            Self::Reentrant => {
                "write `bypass = true` for functions that a global allocator or the destructor of a logger calls"
            }
            Self::NoMemory => "lower PROFILER_RING, or give the process more memory",
            Self::ThreadPanicked => "a bug in the profiler; please report it",
        }
    }

    /// Returns `true` if a warning names the cause when it occurs.
    const fn has_own_warning(self) -> bool {
        match self {
            Self::LoggerFailed
            | Self::LoggerPanicked
            | Self::LoggerBlocked
            | Self::NoCollector
            | Self::ThreadPanicked => true,
            Self::RingFull | Self::NoCudaTime | Self::Reentrant | Self::NoMemory => false,
        }
    }

    /// Returns the reason as a key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::LoggerFailed => "logger_failed",
            Self::LoggerPanicked => "logger_panicked",
            Self::LoggerBlocked => "logger_blocked",
            Self::NoCudaTime => "no_cuda_time",
            Self::NoCollector => "no_collector",
            Self::Reentrant => "reentrant",
            Self::NoMemory => "no_memory",
            Self::ThreadPanicked => "thread_panicked",
        }
    }
}

#[cfg(feature = "serde")]
impl super::reason::Reason for DropReason {
    const ALL: &'static [Self] = &Self::ALL;

    fn key(self) -> &'static str {
        self.key()
    }
}

/// Dropped entries by reason. A measured thread counts a full ring in its cell instead (`StatCell::ring_full`).
static DROPPED: [AtomicU64; DropReason::ALL.len()] =
    [const { AtomicU64::new(0) }; DropReason::ALL.len()];

/// `true` once a measured thread has counted a full ring in its cell.
static HAD_FULL_RING: AtomicBool = AtomicBool::new(false);

/// Notes that a thread has counted a full ring in its cell, for [`warn_of_drops`].
pub(crate) fn note_full_ring() {
    // Load first: a store would take the cache line away from other threads whose rings are full.
    if !HAD_FULL_RING.load(Relaxed) {
        HAD_FULL_RING.store(true, Relaxed);
    }
}

/// Warns of the first dropped log entry of each reason whose cause has no warning of its own.
///
/// Background threads call this, and the end of the program: measured threads only count, since a warning may wait for
/// standard error, and may reach a `tracing` subscriber, which is user code.
pub(crate) fn warn_of_drops() {
    static WARNED: [AtomicBool; DropReason::ALL.len()] =
        [const { AtomicBool::new(false) }; DropReason::ALL.len()];

    for reason in DropReason::ALL {
        let is_full_ring = reason == DropReason::RingFull && HAD_FULL_RING.load(Relaxed);
        let has_occurred = is_full_ring || dropped(reason) > 0;
        let is_new = || !WARNED[reason as usize].swap(true, Relaxed);
        if has_occurred && !reason.has_own_warning() && is_new() {
            let (why, advice) = (reason.as_str(), reason.advice());
            warn_once(&format!(
                "log entries are dropped ({why}): {advice}; the summary counts them, and its times include their calls"
            ));
        }
    }
}

/// Counts dropped log entries.
pub(crate) fn count_dropped(reason: DropReason, entries: u64) {
    DROPPED[reason as usize].fetch_add(entries, Relaxed);
}

/// Returns how many log entries were dropped for `reason`, without those that the cells of threads count.
pub(crate) fn dropped(reason: DropReason) -> u64 {
    DROPPED[reason as usize].load(Relaxed)
}

/// Calls that are missing from the statistics because there was no memory for them.
static UNMEASURED: AtomicU64 = AtomicU64::new(0);

/// Counts a call that is missing from the statistics.
pub(crate) fn count_unmeasured() {
    UNMEASURED.fetch_add(1, Relaxed);
}

/// Returns how many calls are missing from the statistics.
pub(crate) fn unmeasured() -> u64 {
    UNMEASURED.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dropped_entry_is_warned_of_with_the_remedy() {
        let warnings = || -> Vec<String> {
            let notices = crate::diagnostics::notices().into_iter();
            notices
                .filter(|notice| notice.starts_with("log entries are dropped (ring full)"))
                .collect()
        };
        note_full_ring();
        warn_of_drops();
        warn_of_drops();
        let expected = "log entries are dropped (ring full): raise PROFILER_RING, log fewer calls with `log_every`, or use \
                        a faster logger; the summary counts them, and its times include their calls";
        assert_eq!(warnings(), [expected]);
    }

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
