//! A complete log entry, and the loggers that it goes to.

use std::time::SystemTime;

use profiler_log::{CudaSpan, Logger, Scalar};

use crate::name::{CircuitBreaker, Name};

/// One measurement, complete but for its loggers.
#[derive(Clone, Copy)]
pub(crate) struct LogEntry {
    pub(crate) name: &'static Name,
    /// The logged value: the GPU time or the CPU time, whichever the name is logged by.
    pub(crate) milliseconds: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) cuda: Option<CudaSpan>,
    pub(crate) step: u64,
    pub(crate) wall_time: SystemTime,
}

impl LogEntry {
    /// Returns the view of the entry that a logger is called with.
    pub(super) fn scalar(&self) -> Scalar<'_> {
        let (tag, wall_time) = (self.name.log_tag(), self.wall_time);
        let mut scalar = Scalar::new(tag, self.milliseconds, self.step, wall_time);
        scalar.name = &self.name.text;
        scalar.cpu_ms = self.cpu_ms;
        scalar.cuda = self.cuda;
        scalar
    }
}

/// A logger, with the circuit breaker that says whether it may be called.
pub(super) struct Recipient {
    pub(super) logger: Logger,
    pub(super) breaker: &'static CircuitBreaker,
}

impl Recipient {
    /// Returns another handle to the same logger, or `None` if it belongs to a single call.
    pub(super) fn share(&self) -> Option<Self> {
        Some(Self {
            logger: self.logger.share()?,
            breaker: self.breaker,
        })
    }
}
