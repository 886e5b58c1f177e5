//! Samples of devices as a file.

use std::path::Path;

use profiler_report::ExportError;
use profiler_report::internal::write_gpu_samples;

use crate::cuda::nvml;

/// Writes the samples of all devices since sampling began as CSV, with the header and the units of
/// `nvidia-smi --query-gpu=… --format=csv`: compressed if the name ends with `.gz`.
///
/// Times are UTC, `index` is the number of the device in `nvidia-smi`, and a reading that the device does not have is
/// `[N/A]`. Of a long run, older samples are merged: their lines are means. Without samples, the file has only the header.
///
/// # Errors
///
/// Returns an error if the file cannot be created or written.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::export_gpu_samples;
///
/// # let path = std::env::temp_dir().join(format!("gpu-samples-{}.csv", std::process::id()));
/// export_gpu_samples(&path)?;
/// assert!(std::fs::read_to_string(&path)?.starts_with("timestamp, index, name, utilization.gpu [%]"));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export_gpu_samples(path: impl AsRef<Path>) -> Result<(), ExportError> {
    write_gpu_samples(path.as_ref(), &nvml::samples().devices)
}
