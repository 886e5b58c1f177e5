//! The process that the profiler is a guest in: what a fork leaves behind, and what it must not do to the program.

pub(crate) mod descriptor;
pub(crate) mod fork;
mod lock;
pub(crate) mod new_file;
mod once;
pub(crate) mod output;
pub(crate) mod privileges;
pub(crate) mod signals;
pub(crate) mod thread;
mod wait;

pub(crate) use lock::{Lock, abandoned};
pub(crate) use once::RaceCell;
pub(crate) use wait::wait_while;
