//! What [`init`](crate::startup::init) can refuse.

use std::fmt;

use crate::log::LogError;

/// Why the profiler could not be set up as asked. The program can go on: what is annotated is
/// measured all the same, only the part that failed is missing.
///
/// It is shown in words by `Debug` too: that is what a `main` that returns it prints.
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
    /// GPU times were requested (`PROFILER_BACKEND=cuda`) and cannot be measured.
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
}

impl fmt::Debug for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
