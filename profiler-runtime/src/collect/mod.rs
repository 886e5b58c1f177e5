//! Carries log entries from the measured threads to the loggers.
//!
//! A logged call is three types on this way, and a fourth one is what its loggers get:
//!
//! 1. [`LogRequest`](crate::log_record::LogRequest): what the call asks for, its logger and its step.
//! 2. [`LogRecord`](crate::log_record::LogRecord): what the measured thread pushes to its ring when the call ends.
//! 3. [`LogEntry`]: what the collector makes of the record, with the step and the wall time. (The GPU's resolver makes
//!    entries itself.) A job of the dispatcher is an entry with one [`Recipient`](entry::Recipient).
//! 4. [`Scalar`](profiler_log::Scalar): a view of the entry, passed to the logger.
//!
//! A measured thread only pushes to its own ring. The collector's thread empties the rings, and numbers the steps of what it
//! finds there; it runs no user code. Loggers are user code: they run on the dispatcher's worker, under a watchdog.

mod backlog;
mod collector;
mod defaults;
mod deliver;
mod dispatcher;
mod entry;
mod flush;
mod gpu_samples;
mod jobs;
mod ledger;
mod log_call;
mod ring;
mod takeover;
mod unflushed;
mod watchdog;

pub(crate) use backlog::Backlog;
pub(crate) use collector::{next_step, send};
pub(crate) use defaults::{
    add_default, open_from_environment, set_default_from, tensorboard_on_demand,
};
pub(crate) use entry::LogEntry;
pub(crate) use flush::flush;
pub(crate) use gpu_samples::log_gpu_sample;
pub(crate) use ledger::{taken, unsaved};
pub(crate) use log_call::{log, log_early, log_here};
