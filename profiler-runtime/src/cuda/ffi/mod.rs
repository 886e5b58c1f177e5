//! The CUDA driver: its library, its functions and its result codes.

pub(crate) mod code;
pub(crate) mod discovery;
pub(crate) mod driver;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(crate) mod dynamic;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "not_built.rs"]
mod dynamic;
pub(crate) mod elapsed;
pub(crate) mod event_api;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod library;
pub(crate) mod table;

pub(crate) use event_api::{Capturing, EventApi};
