//! The error of [`init`](crate::startup::init).

use profiler_host::debug_with_message;
use profiler_log::LogError;
use profiler_report::SummaryFileError;

/// Why the profiler could not be set up as asked.
///
/// The program can continue: annotated functions are measured, and only the part that failed is missing.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The TensorBoard log could not be opened.
    #[error("the TensorBoard log that was asked for cannot be opened: {0}")]
    Log(#[from] LogError),
    /// The name of the file for the summary has an ending that names no format. The table goes to standard error.
    #[error(transparent)]
    Summary(#[from] SummaryFileError),
    /// GPU times were requested (`PROFILER_BACKEND=cuda`) and cannot be measured.
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
}

debug_with_message!(InitError: Log, Summary, Cuda);
