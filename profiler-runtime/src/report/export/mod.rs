//! Traces as files in the Chrome trace format.

#[cfg(feature = "trace")]
mod chrome;

#[cfg(feature = "trace")]
pub(crate) use chrome::own_rank;
#[cfg(feature = "trace")]
pub use chrome::{ExportError, LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
