//! Configuration: the environment variables, and the schedules of sessions.

mod filter;
mod interval;
mod paths;
mod reader;
mod schedule;
mod settings;
mod values;
mod variables;

pub(crate) use filter::Filter;
pub(crate) use interval::{LONGEST as LONGEST_INTERVAL, SHORTEST as SHORTEST_INTERVAL};
pub use schedule::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub(crate) use settings::{SessionSettings, Settings};
pub use values::{Backend, SummaryTarget};
pub(crate) use values::{DEFAULT_CELL_MEMORY, ImplicitStream, KernelRecording, Nvtx};
pub use variables::{VARIABLES, Variable};
