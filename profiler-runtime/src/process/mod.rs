//! The host process: forks, exit handlers, signals, and output that does not disturb the program.

pub(crate) mod exit;
pub(crate) mod fork;
#[cfg(any(feature = "tensorboard", feature = "trace"))]
pub(crate) mod host;
pub(crate) mod output;
pub(crate) mod platform;
pub(crate) mod privileges;
pub(crate) mod signals;
pub(crate) mod thread;
