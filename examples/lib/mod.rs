//! Code that the examples share: data, a small network on the CPU and on a GPU, random numbers. It
//! is not measured; each example annotates its own functions.

pub mod device;
pub mod digits;
pub mod model;
pub mod network;
pub mod random;
