//! The figures that are compared.

use std::fmt;

use profiler_report::internal::{format_bytes, format_time};

/// A figure of a function in a run, for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// How long the thread ran on a processor, without children.
    Thread,
    /// The elapsed time without children.
    Elapsed,
    /// The time on the GPU without children.
    Cuda,
    /// The 95th percentile of the elapsed time.
    ElapsedP95,
    /// The 95th percentile of the time on the GPU.
    CudaP95,
    /// The host memory that was allocated, without children.
    Allocated,
}

impl Metric {
    pub(crate) const ALL: [Self; 6] = [
        Self::Thread,
        Self::Elapsed,
        Self::Cuda,
        Self::ElapsedP95,
        Self::CudaP95,
        Self::Allocated,
    ];

    /// Returns the heading, as tables show it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Thread => "CPU thread",
            Self::Elapsed => "CPU",
            Self::Cuda => "CUDA",
            Self::ElapsedP95 => "CPU p95",
            Self::CudaP95 => "CUDA p95",
            Self::Allocated => "allocated",
        }
    }

    /// Returns `true` for a time on the GPU.
    pub(crate) const fn is_cuda(self) -> bool {
        matches!(self, Self::Cuda | Self::CudaP95)
    }

    /// Returns `true` if the figure depends on how fast the machine is.
    pub(crate) const fn is_time(self) -> bool {
        !matches!(self, Self::Allocated)
    }

    /// Returns `true` for a percentile, which is only known to the width of a bucket.
    pub(crate) const fn is_percentile(self) -> bool {
        matches!(self, Self::ElapsedP95 | Self::CudaP95)
    }

    /// Formats a figure with its unit.
    pub(crate) fn format(self, value: f64) -> String {
        if self == Self::Allocated {
            format_bytes(value)
        } else {
            format_time(value)
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (metric, value, text) in [
            (Metric::Elapsed, 0.0, "0 ns"),
            (Metric::Thread, 812.4, "812 ns"),
            (Metric::Cuda, 51_640.0, "51.6 µs"),
            (Metric::CudaP95, 999_600.0, "1.00 ms"),
            (Metric::Elapsed, 2.291e9, "2.29 s"),
            (Metric::Elapsed, 108_000e9, "30.0 h"),
            (Metric::Allocated, 12.5, "12.5 B"),
            (Metric::Allocated, 1536.0, "1.50 KiB"),
        ] {
            assert_eq!(metric.format(value), text);
        }
    }
}
