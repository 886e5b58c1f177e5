//! The category of launches in a Chrome trace.

use super::LAUNCHES;

/// The category of kernel launches in a trace. TensorBoard's trace plugin and HTA each expect another one.
///
/// | tool | shows with `Runtime` | shows with `CudaRuntime` |
/// |---|---|---|
/// | TensorBoard's trace plugin 0.4.3, its last release | everything | 0 as the GPU time of each operator |
/// | HTA 0.5 | everything but its critical path and CUPTI counters | everything |
/// | Perfetto | everything | everything |
///
/// `TensorBoardTraces` and `tensorboard_trace_handler` of `profiler_runtime` write `Runtime` by default. `export_chrome_trace`
/// always writes `CudaRuntime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchCategory {
    /// `Runtime`, which PyTorch wrote before 2.0: for TensorBoard's trace plugin.
    #[default]
    Runtime,
    /// `cuda_runtime`, which PyTorch writes since 2.0: for HTA.
    CudaRuntime,
}

impl LaunchCategory {
    /// Returns the category as it is written.
    #[doc(hidden)]
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CudaRuntime => LAUNCHES,
            Self::Runtime => "Runtime",
        }
    }
}
