//! The way from the measured threads to the loggers: rings, one collector, one dispatcher.
//!
//! A measured thread only ever pushes into its own ring. The collector empties the rings and numbers
//! the steps; it never runs foreign code. Loggers, which are foreign code, run behind the dispatcher.

mod backlog;
mod collector;
mod defaults;
mod dispatcher;
mod flush;
mod ledger;
mod ring;
mod watchdog;

pub(crate) use backlog::{Backlog, LogEntry, log_here};
pub(crate) use collector::next_step;
pub(crate) use collector::on_each_round;
pub(crate) use defaults::{add_default, open_from_environment, set_default_from};
pub(crate) use flush::flush;
pub(crate) use ledger::{taken, unsaved};
pub(crate) use ring::log;
