//! The way from the measured threads to the loggers: rings, one collector, one outlet.
//!
//! A measured thread only ever pushes into its own ring. The collector empties the rings and numbers
//! the steps; it never runs foreign code. Loggers, which are foreign code, run behind the outlet.

mod collector;
mod defaults;
mod flush;
mod ledger;
mod outbox;
mod outlet;
mod ring;
mod watch;

pub(crate) use collector::next_step;
pub(crate) use collector::on_each_round;
pub(crate) use defaults::{add_default, open_from_environment, set_default_from};
pub(crate) use flush::flush;
pub(crate) use ledger::{taken, unsaved};
pub(crate) use outbox::{LogEntry, Outbox, log_here};
pub(crate) use ring::log;
