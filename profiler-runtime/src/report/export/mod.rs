//! Summaries and traces as files for other tools.

#[cfg(any(feature = "export", feature = "trace"))]
mod chrome;
#[cfg(feature = "export")]
mod date;
mod error;
mod file;
#[cfg(feature = "export")]
mod gpu_csv;
#[cfg(feature = "export")]
mod html;
#[cfg(feature = "export")]
mod otlp;
mod overlap;
#[cfg(feature = "export")]
mod perfetto;
#[cfg(feature = "export")]
mod viewers;
#[cfg(any(feature = "trace", all(feature = "export", feature = "session")))]
mod window;

pub use error::ExportError;
#[cfg(feature = "export")]
pub use gpu_csv::export_gpu_samples;
#[cfg(feature = "export")]
pub use html::Page;
#[cfg(feature = "export")]
pub use viewers::{StackMetric, StackMetricError};
#[cfg(feature = "trace")]
pub use window::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
