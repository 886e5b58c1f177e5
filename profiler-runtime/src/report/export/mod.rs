//! Summaries and traces as files for other tools.

mod error;
mod file;
#[cfg(any(feature = "trace", all(feature = "export", feature = "session")))]
mod window;

pub use error::ExportError;
#[cfg(feature = "trace")]
pub use window::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
