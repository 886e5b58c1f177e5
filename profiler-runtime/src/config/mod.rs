//! Configuration: the environment variables, and the schedules of sessions.

mod filter;
mod reader;
mod schedule;
mod settings;
mod similar;
mod values;
mod variables;

pub(crate) use filter::Filter;
pub use schedule::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub(crate) use settings::{SessionSettings, Settings};
pub(crate) use similar::{did_you_mean, similar};
pub(crate) use values::ImplicitStream;
pub use values::{Backend, SummaryTarget};
pub use variables::{VARIABLES, Variable};
