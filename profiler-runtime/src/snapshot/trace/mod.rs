//! Windows of sessions as files.

#[cfg(feature = "trace")]
mod chrome;
#[cfg(feature = "export")]
mod files;
#[cfg(feature = "export")]
mod gpu_samples;
#[cfg(feature = "export")]
mod page;
mod tensorboard;
#[cfg(feature = "trace")]
mod tensorboard_files;

#[cfg(feature = "export")]
pub use gpu_samples::export_gpu_samples;
pub use tensorboard::trace_handler;
#[cfg(feature = "trace")]
pub use tensorboard_files::{TensorBoardTraces, tensorboard_trace_handler};
