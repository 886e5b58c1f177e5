//! The process around the profiler: what a fork leaves behind.

pub(crate) mod fork;
mod lock;
mod once;

pub(crate) use lock::{Lock, abandoned};
pub(crate) use once::RaceCell;
