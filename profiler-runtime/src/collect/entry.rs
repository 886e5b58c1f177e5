//! A complete log entry, and the loggers that it goes to.

use std::time::SystemTime;

use super::defaults;
use crate::log::{CudaSpan, Logger, Scalar};
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
        Scalar {
            name: &self.name.text,
            cpu_ms: self.cpu_ms,
            cuda: self.cuda,
            ..Scalar::new(
                self.name.log_tag(),
                self.milliseconds,
                self.step,
                self.wall_time,
            )
        }
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

/// Calls `send` for each logger that takes an entry of `name`: the call's own logger, else the default loggers.
pub(super) fn fan_out(
    name: &'static Name,
    logger: Option<Logger>,
    mut send: impl FnMut(Recipient),
) {
    let breaker = &name.breaker;
    match logger {
        Some(logger) => send(Recipient { logger, breaker }),
        None => defaults::all().into_iter().for_each(send),
    }
}
