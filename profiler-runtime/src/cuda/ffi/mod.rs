//! The CUDA driver: its library, its entry points and its result codes.

pub(crate) mod code;
pub(crate) mod driver;
#[cfg(feature = "cuda")]
mod dynamic;
pub(crate) mod elapsed;
pub(crate) mod library;
