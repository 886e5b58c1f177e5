//! Synchronization between threads: locks that survive a fork, rings, and requests.

mod doze;
mod lock;
mod once;
mod padded;
pub mod prefetch;
pub mod primitive;
mod queue;
mod reentrancy;
mod request;
pub mod ring;
mod rings;
mod wait;

pub use doze::{Doze, SETTLED};
pub use lock::{Lock, Locked, abandoned};
pub use once::RaceCell;
pub use queue::Queue;
pub use reentrancy::ReentrancyGuard;
pub use request::Requests;
pub use rings::Rings;
pub use wait::{wait, wait_while};
