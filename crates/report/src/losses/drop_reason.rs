//! The reasons why log entries are dropped.

/// Why a logged call did not reach its logger. The summary counts the call and its time all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The ring of the thread, or the ring of the GPU times, was full: the program logged more than the loggers processed,
    /// or a logger did not return.
    RingFull,
    /// The logger returned an error.
    LoggerFailed,
    /// The logger panicked, for this entry or an earlier one. It is not called again for that name.
    LoggerPanicked,
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
    pub const ALL: [Self; 8] = [
        Self::RingFull,
        Self::LoggerFailed,
        Self::LoggerPanicked,
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

    #[doc(hidden)]
    #[must_use]
    pub const fn has_own_warning(self) -> bool {
        match self {
            Self::LoggerFailed
            | Self::LoggerPanicked
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_their_order() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
