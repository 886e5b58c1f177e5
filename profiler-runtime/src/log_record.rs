//! A logged call on its way to the collector, or to the resolver if it has a GPU time.

use profiler_log::Logger;

/// The logger and the step that a call asks for.
#[derive(Debug)]
pub(crate) struct LogRequest {
    /// The logger that takes the entry; the default loggers do if there is none.
    pub(crate) logger: Option<Logger>,
    /// The step, if the call gave one.
    pub(crate) step: Option<u64>,
    /// The sampling interval: one call in `every` is logged. At least 1.
    pub(crate) every: u32,
    /// The calls of this name that the thread could not log since the last one that it could.
    pub(crate) skipped: u64,
}

impl LogRequest {
    /// Returns a request without a logger and a step.
    pub(crate) const fn new(every: u32) -> Self {
        Self {
            logger: None,
            step: None,
            every,
            skipped: 0,
        }
    }
}

/// A finished call that is to be logged with its CPU time.
pub(crate) struct LogRecord {
    /// The id of its name.
    pub(crate) id: u32,
    /// When the scope ended, in ticks of the clock.
    pub(crate) end: u64,
    /// How long it took, in ticks, less the cost of reading the clock.
    pub(crate) elapsed: i64,
    pub(crate) request: LogRequest,
}
