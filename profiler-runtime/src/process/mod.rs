//! The host process: forks, exit handlers, signals, and output that does not disturb the program.

pub(crate) mod exit;
pub(crate) mod fork;
pub(crate) mod host;
pub(crate) mod output;
pub(crate) mod platform;
pub(crate) mod privileges;
pub(crate) mod processor_time;
pub(crate) mod program;
pub(crate) mod signals;
pub(crate) mod thread;
