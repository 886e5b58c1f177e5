//! The host process: forks, exit handlers, signals, and output that does not disturb the program.

pub mod exit;
pub mod fork;
#[cfg(all(test, unix, not(miri)))]
mod fork_and;
pub mod host;
pub mod output;
pub mod owner;
pub mod platform;
pub mod privileges;
pub mod processor_time;
pub mod program;
pub mod signals;
pub mod thread;
pub mod thread_times;

#[cfg(all(test, unix, not(miri)))]
pub(crate) use fork_and::fork_and;
