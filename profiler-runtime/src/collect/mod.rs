//! Carries log entries from the measured threads to the loggers.
//!
//! A logged call is three types on this way, and a fourth one is what its loggers get:
//!
//! 1. [`LogRequest`](crate::log_record::LogRequest): what the call asks for, its logger and its step.
//! 2. [`LogRecord`](crate::log_record::LogRecord): what the measured thread pushes to its ring when the call ends.
//! 3. [`LogEntry`]: what the collector makes of the record, with the step and the wall time. (The GPU's resolver makes
//!    entries itself, and pushes them to a ring of its own.)
//! 4. [`Scalar`](profiler_log::Scalar): a view of the entry, passed to the logger.
//!
//! A measured thread only pushes to its own ring. The collector's thread empties the rings, numbers the steps of what it
//! finds there, and calls the loggers, which are user code. While one of them does not return, the others wait, and the rings
//! fill; the program goes on.

mod collector;
mod contain;
mod defaults;
mod deliver;
mod entry;
mod flush;
mod gpu_entries;
mod gpu_samples;
mod held_up;
mod ledger;
mod log_call;
mod ring;
mod unflushed;

pub(crate) use collector::{hold, next_step};
pub(crate) use defaults::{
    add_default, folder_of_environment, open_from_environment, set_default_from,
    tensorboard_on_demand,
};
pub(crate) use entry::LogEntry;
pub(crate) use flush::flush;
pub(crate) use gpu_entries::EntrySender;
pub(crate) use gpu_samples::log_gpu_sample;
pub(crate) use ledger::taken;
pub(crate) use log_call::{cost_of_record, log, log_early, log_here};
pub(crate) use ring::outcomes;
