//! What one finished scope is, on its way to the collector: plain data.

use super::Logger;

/// One call that is to be logged.
pub(crate) struct LogRecord {
    /// The number of its name.
    pub(crate) id: u32,
    /// When the scope ended, in ticks of the clock.
    pub(crate) end: u64,
    /// How long it took, in ticks, less the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// The step that the call brought along.
    pub(crate) step: Option<u64>,
    /// One call in so many is logged.
    pub(crate) every: u32,
    /// Records of this name that the thread could not push just before this one.
    pub(crate) skipped: u64,
    /// Who takes it; the default loggers where the call brought none.
    pub(crate) logger: Option<Logger>,
}

/// What a call brings along for its log entry.
#[derive(Debug, Default)]
pub(crate) struct LogRequest {
    pub(crate) logger: Option<Logger>,
    pub(crate) step: Option<u64>,
}
