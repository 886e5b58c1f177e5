//! The CUDA driver: whether it may be called, and the calls that measure.

pub(crate) mod discovery;
mod driver;
pub(crate) mod elapsed;
pub(crate) mod event_api;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod library;
pub(crate) mod refusals;
pub(crate) mod status;

pub(crate) use event_api::{Capturing, EventApi};
