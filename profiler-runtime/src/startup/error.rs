//! The error of [`init`](crate::startup::init).

use std::fmt;

use crate::config::SummaryFileError;
use crate::log::LogError;

/// Why the profiler could not be set up as asked.
///
/// The program can continue: annotated functions are measured, and only the part that failed is missing.
///
/// `Debug` prints the same text as `Display`, since a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The TensorBoard log could not be opened.
    #[error("the TensorBoard log that was asked for cannot be opened: {0}")]
    Log(#[from] LogError),
    /// A TensorBoard log was asked for, but the crate was built without it.
    #[error(
        "a TensorBoard log was asked for, but profiler-runtime was built without its feature \
         `tensorboard`: enable the feature, or leave the log out"
    )]
    NoTensorBoard,
    /// The name of the file for the summary has an ending that names no format. The table goes to standard error.
    #[error(transparent)]
    Summary(#[from] SummaryFileError),
    /// GPU times were requested (`PROFILER_BACKEND=cuda`) and cannot be measured.
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
}

impl fmt::Debug for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
