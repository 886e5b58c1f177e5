//! What the examples share and do not teach: data, a small network on the CPU and on a GPU, random
//! numbers. Nothing here is measured; each example annotates its own functions.

pub mod device;
pub mod digits;
pub mod model;
pub mod network;
pub mod random;
