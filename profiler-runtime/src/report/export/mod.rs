//! Summaries and traces as files for other tools.

#[cfg(feature = "trace")]
mod chrome;
mod error;
mod file;

#[cfg(feature = "trace")]
pub(crate) use chrome::own_rank;
#[cfg(feature = "trace")]
pub use chrome::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
pub use error::ExportError;
