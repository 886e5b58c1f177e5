//! Why a file could not be written.

use std::io;
use std::path::{Path, PathBuf};

use profiler_host::debug_with_message;

#[cfg(feature = "export")]
use crate::stack_metric::{StackMetric, StackMetricError};

/// Why a summary or a trace could not be written to a file.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The file could not be created or written. A file that existed before is unchanged.
    #[error(
        "cannot write {}: {source}; check that its folder is there and can be written and the disk has room",
        path.display()
    )]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Stacks cannot be weighted by a value of this name.
    #[cfg(feature = "export")]
    #[error(transparent)]
    Metric(#[from] StackMetricError),
    /// No call has the value that stacks were to be weighted by.
    #[cfg(feature = "export")]
    #[error("no call has `{metric}`, so there is nothing to weight stacks by: {}", remedy(*metric))]
    NotRecorded {
        /// The value.
        metric: StackMetric,
    },
}

/// Returns what to do about a value that was not recorded.
#[cfg(feature = "export")]
fn remedy(metric: StackMetric) -> &'static str {
    match metric {
        StackMetric::SelfCudaTimeTotal => {
            "name the streams of the calls, or use `self_cpu_time_total`"
        }
        StackMetric::SelfCpuAllocated | StackMetric::SelfCudaMemoryUsage => {
            "record a window with `ProfileBuilder::profile_memory`"
        }
        StackMetric::SelfCpuTimeTotal | StackMetric::Count => "measure at least one call",
    }
}

impl ExportError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io { path, source }
    }
}

debug_with_message!(ExportError: Io, #[cfg(feature = "export")] Metric, #[cfg(feature = "export")] NotRecorded);
