//! Why a scope has no GPU time, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a scope that was to have a GPU time has none. Its CPU time is exact all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CudaLoss {
    /// It was to be measured on a default stream of the current context, and no context was current when it began,
    /// while one was when it ended.
    NoContext,
    /// Its stream was part of a capture: what is captured runs later, in replays of the graph.
    Captured,
    /// More scopes were captured on purpose than there is room for: 256 in each context.
    TooManyCaptured,
    /// The program has more contexts than GPU times are taken in: 256.
    TooManyContexts,
    /// All event pairs that `PROFILER_CUDA_EVENTS` allows were in use.
    PoolEmpty,
    /// The thread's ring was full: it measured faster than the resolver read.
    RingFull,
    /// The profiler's thread that reads events could not be started, or has ended after several panics.
    NoResolver,
    /// The profiler's thread that reads events had it when it panicked: a fault of the profiler's.
    ThreadPanicked,
    /// There was no memory for the thread's ring.
    NoMemory,
    /// It ended on another thread than it began, on a default stream that is another one on each thread.
    OtherThread,
    /// Another context was current when it ended.
    OtherContext,
    /// Its context has failed, as the program's own calls in it do.
    ContextFailed,
    /// Its context was destroyed before the events were read.
    ContextGone,
    /// The driver did not know its stream, or one of its events: the stream was destroyed before the scope ended, or
    /// is not one of the context that was named with it.
    InvalidHandle,
    /// The driver said that it took a time that cannot be: infinite, not a number, negative, or longer than a year.
    ImpossibleTime,
    /// It ran inside a host function (`cuLaunchHostFunc`, `cuStreamAddCallback`), where the driver must not be called.
    HostFunction,
    /// The driver refused a call.
    DriverRefused,
    /// Its guard was forgotten, or the thread ended inside it.
    Abandoned,
}

impl CudaLoss {
    /// All reasons, in the order in which the summary shows them.
    pub const ALL: [Self; 18] = [
        Self::NoContext,
        Self::Captured,
        Self::TooManyCaptured,
        Self::TooManyContexts,
        Self::PoolEmpty,
        Self::RingFull,
        Self::NoResolver,
        Self::ThreadPanicked,
        Self::NoMemory,
        Self::OtherThread,
        Self::OtherContext,
        Self::ContextFailed,
        Self::ContextGone,
        Self::InvalidHandle,
        Self::ImpossibleTime,
        Self::HostFunction,
        Self::DriverRefused,
        Self::Abandoned,
    ];

    /// The reason in words, as the summary shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoContext => "no context when it began",
            Self::Captured => "captured into a graph",
            Self::TooManyCaptured => "more than 256 captured scopes",
            Self::TooManyContexts => "more than 256 contexts",
            Self::PoolEmpty => "event pool empty (raise PROFILER_CUDA_EVENTS)",
            Self::RingFull => "ring full (raise PROFILER_RING)",
            Self::NoResolver => "no thread to read it",
            Self::ThreadPanicked => "the profiler's thread panicked",
            Self::NoMemory => "no memory",
            Self::OtherThread => "ended on another thread",
            Self::OtherContext => "ended in another context",
            Self::ContextFailed => "context failed",
            Self::ContextGone => "context destroyed",
            Self::InvalidHandle => "invalid handle (stream destroyed too early?)",
            Self::ImpossibleTime => "the driver told an impossible time",
            Self::HostFunction => "inside a host function (use `bypass`)",
            Self::DriverRefused => "refused by the driver",
            Self::Abandoned => "guard forgotten",
        }
    }

    /// The reason as a key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::NoContext => "no_context",
            Self::Captured => "captured",
            Self::TooManyCaptured => "too_many_captured",
            Self::TooManyContexts => "too_many_contexts",
            Self::PoolEmpty => "pool_empty",
            Self::RingFull => "ring_full",
            Self::NoResolver => "no_resolver",
            Self::ThreadPanicked => "thread_panicked",
            Self::NoMemory => "no_memory",
            Self::OtherThread => "other_thread",
            Self::OtherContext => "other_context",
            Self::ContextFailed => "context_failed",
            Self::ContextGone => "context_gone",
            Self::InvalidHandle => "invalid_handle",
            Self::ImpossibleTime => "impossible_time",
            Self::HostFunction => "host_function",
            Self::DriverRefused => "driver_refused",
            Self::Abandoned => "abandoned",
        }
    }
}

static LOST: [AtomicU64; CudaLoss::ALL.len()] = [const { AtomicU64::new(0) }; CudaLoss::ALL.len()];

pub(crate) fn count(reason: CudaLoss) {
    LOST[reason as usize].fetch_add(1, Relaxed);
}

/// The reasons that occurred, and how often.
pub(crate) fn counted() -> Vec<(CudaLoss, u64)> {
    CudaLoss::ALL
        .into_iter()
        .map(|reason| (reason, LOST[reason as usize].load(Relaxed)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, reason) in CudaLoss::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
