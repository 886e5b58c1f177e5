//! The reasons why scopes have no GPU time.

/// The reason why a scope that should have a GPU time has none. Its CPU time is exact nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CudaLoss {
    /// The scope was to be measured on a default stream of the current context, and a context became current only
    /// after the scope began.
    NoContext,
    /// The stream was being captured: captured work runs later, in replays of the graph.
    Captured,
    /// The context already has 256 scopes with `cuda_graph`, the limit per context.
    TooManyCaptured,
    /// The program has made more than 256 contexts, the limit per process.
    TooManyContexts,
    /// All event pairs that `PROFILER_CUDA_EVENTS` allows per context were in use.
    PoolEmpty,
    /// The thread's ring was full: the thread measured faster than the profiler read the events.
    RingFull,
    /// The profiler's thread that reads events could not be started, or ended after repeated panics.
    NoResolver,
    /// The profiler's thread that reads events panicked while it held the scope. This is a bug in the profiler.
    ThreadPanicked,
    /// The thread's ring could not be allocated.
    NoMemory,
    /// The scope was measured on a per-thread default stream and ended on another thread than it began.
    OtherThread,
    /// The scope was measured on a default stream, and another context was current when it ended.
    OtherContext,
    /// The context has failed: every call in it fails from then on, the program's own calls included.
    ContextFailed,
    /// The context was destroyed before the events were read.
    ContextGone,
    /// The driver did not recognise the stream or one of the events: the stream was destroyed before the scope ended,
    /// or does not belong to the context that was given with it.
    InvalidHandle,
    /// The driver reported an impossible time: infinite, not a number, negative, or longer than a year.
    ImpossibleTime,
    /// The scope ran inside a host function (`cuLaunchHostFunc`, `cuStreamAddCallback`), which must not call the
    /// driver.
    HostFunction,
    /// The driver refused a call for another reason.
    DriverRefused,
    /// The guard of the scope was forgotten, or the thread ended inside the scope.
    Abandoned,
}

impl CudaLoss {
    /// All reasons, in the order in which the summary lists them.
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

    /// Returns the reason in words, as the summary shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoContext => "no context when it began",
            Self::Captured => "captured into a graph",
            Self::TooManyCaptured => "more than 256 captured scopes",
            Self::TooManyContexts => "more than 256 contexts",
            Self::PoolEmpty => "event pool empty",
            Self::RingFull => "ring full",
            Self::NoResolver => "no thread to read it",
            Self::ThreadPanicked => "the profiler's thread panicked",
            Self::NoMemory => "no memory",
            Self::OtherThread => "ended on another thread",
            Self::OtherContext => "ended in another context",
            Self::ContextFailed => "context failed",
            Self::ContextGone => "context destroyed",
            Self::InvalidHandle => "invalid handle",
            Self::ImpossibleTime => "the driver reported an impossible time",
            Self::HostFunction => "inside a host function",
            Self::DriverRefused => "refused by the driver",
            Self::Abandoned => "guard forgotten",
        }
    }

    /// Returns what to do about it, as the summary shows it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::NoContext => "name the stream, or make a context current before the scope begins",
            Self::Captured => "write `cuda_graph = true` to measure the replays of the graph",
            Self::TooManyCaptured => "measure fewer scopes inside captures",
            Self::TooManyContexts => "use fewer contexts, or measure before others are created",
            Self::PoolEmpty => "raise PROFILER_CUDA_EVENTS, or measure fewer scopes",
            Self::RingFull => "raise PROFILER_RING, or measure fewer scopes",
            Self::NoResolver => "see the warnings about the profiler's threads",
            Self::ThreadPanicked => "a bug in the profiler; please report it",
            Self::NoMemory => "lower PROFILER_RING, or give the process more memory",
            Self::OtherThread => {
                "name the stream: a per-thread default stream belongs to the thread of the beginning"
            }
            Self::OtherContext => {
                "name the stream, or end the scope in the context that it began in"
            }
            Self::ContextFailed => {
                "fix the CUDA error that the program's own calls return; earlier times are right"
            }
            Self::ContextGone => "call `flush` before a context is destroyed or its device reset",
            Self::InvalidHandle => {
                "keep the stream alive until the scope ends, and name it with its own context"
            }
            Self::ImpossibleTime => "the driver, or a library in front of it, is broken",
            Self::HostFunction => "write `bypass = true` for functions that run there",
            Self::DriverRefused => "a warning has the driver's error",
            Self::Abandoned => "drop the guard, and end scopes before their thread ends",
        }
    }

    /// Returns the key of the reason in JSON.
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

#[cfg(feature = "serde")]
impl super::reason::Reason for CudaLoss {
    const ALL: &'static [Self] = &Self::ALL;

    fn key(self) -> &'static str {
        self.key()
    }
}

/// The key of the reason, as in the JSON of a summary.
#[cfg(feature = "serde")]
impl serde::Serialize for CudaLoss {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_their_order() {
        for (index, reason) in CudaLoss::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
