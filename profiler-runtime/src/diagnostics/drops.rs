//! Counts of what was not measured or did not reach its logger.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Dropped entries by reason. A measured thread counts a full ring in its cell instead (`StatCell::ring_full`).
static DROPPED: [AtomicU64; DropReason::ALL.len()] =
    [const { AtomicU64::new(0) }; DropReason::ALL.len()];

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
    fn each_reason_has_a_counter_of_its_own() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
