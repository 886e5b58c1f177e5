//! Synchronization that survives forks, and rings between threads.

mod lock;
mod once;
pub(crate) mod primitive;
mod reentrancy;
pub(crate) mod ring;
mod rings;
mod wait;

pub(crate) use lock::{Lock, abandoned};
pub(crate) use once::RaceCell;
pub(crate) use reentrancy::ReentrancyGuard;
pub(crate) use rings::Rings;
pub(crate) use wait::wait_while;
