//! What the examples share and do not teach: data, a small network, random numbers. Nothing here is
//! measured; each example annotates its own functions.

pub mod digits;
pub mod network;
pub mod random;
