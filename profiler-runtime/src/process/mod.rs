//! The process that the profiler is a guest in: what a fork leaves behind, and what it must not do to the program.

pub(crate) mod descriptor;
pub(crate) mod exit;
pub(crate) mod fork;
#[cfg(any(feature = "tensorboard", feature = "trace"))]
pub(crate) mod host;
pub(crate) mod new_file;
pub(crate) mod output;
pub(crate) mod privileges;
pub(crate) mod signals;
pub(crate) mod thread;
