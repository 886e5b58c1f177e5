//! Synchronization between threads: locks that survive a fork, rings, and requests.

mod lock;
mod once;
mod padded;
pub(crate) mod prefetch;
pub(crate) mod primitive;
mod queue;
mod reentrancy;
mod request;
pub(crate) mod ring;
mod rings;
mod wait;

pub(crate) use lock::{Lock, abandoned};
pub(crate) use once::RaceCell;
pub(crate) use queue::Queue;
pub(crate) use reentrancy::ReentrancyGuard;
pub(crate) use request::Requests;
pub(crate) use rings::Rings;
pub(crate) use wait::{wait, wait_while};
