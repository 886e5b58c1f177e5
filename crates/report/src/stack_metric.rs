//! The values that stacks can be weighted by.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use profiler_host::diagnostics::{did_you_mean, similar};

use crate::CallNode;

/// A value that [stacks](crate::CallTree::export_stacks) are weighted by. Values that `torch.profiler` has are
/// named as there. Methods that take one accept its name too, and so does [`str::parse`].
///
/// # Examples
///
/// ```
/// use profiler_report::StackMetric;
///
/// assert_eq!("self_cuda_time_total".parse(), Ok(StackMetric::SelfCudaTimeTotal));
/// assert!("cuda".parse::<StackMetric>().unwrap_err().to_string().contains("self_cuda_time_total"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StackMetric {
    /// `self_cpu_time_total`: CPU time without children, in nanoseconds.
    SelfCpuTimeTotal,
    /// `self_cuda_time_total`: GPU time without children, in nanoseconds.
    SelfCudaTimeTotal,
    /// `self_cpu_allocated`: host bytes allocated without children.
    SelfCpuAllocated,
    /// `self_cuda_memory_usage`: device bytes allocated less those freed, without children. Stacks that freed more than
    /// they allocated are left out.
    SelfCudaMemoryUsage,
    /// `count`: the number of calls.
    Count,
}

impl StackMetric {
    /// All values.
    pub const ALL: [Self; 5] = [
        Self::SelfCpuTimeTotal,
        Self::SelfCudaTimeTotal,
        Self::SelfCpuAllocated,
        Self::SelfCudaMemoryUsage,
        Self::Count,
    ];

    /// Returns the name of the value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SelfCpuTimeTotal => "self_cpu_time_total",
            Self::SelfCudaTimeTotal => "self_cuda_time_total",
            Self::SelfCpuAllocated => "self_cpu_allocated",
            Self::SelfCudaMemoryUsage => "self_cuda_memory_usage",
            Self::Count => "count",
        }
    }

    /// Returns the value of a node without its children; `None` if it was not recorded.
    pub(super) fn of(self, node: &CallNode) -> Option<f64> {
        match self {
            Self::SelfCpuTimeTotal => node.cpu.map(|cpu| cpu.self_ns),
            Self::SelfCudaTimeTotal => node.cuda.map(|cuda| cuda.self_ns),
            Self::SelfCpuAllocated => node.allocated_bytes.map(|bytes| bytes as f64),
            Self::SelfCudaMemoryUsage => node.device_bytes.map(|bytes| bytes as f64),
            Self::Count => Some(node.calls as f64),
        }
    }
}

impl fmt::Display for StackMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no [`StackMetric`] has.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "stacks cannot be weighted by `{0}`: use one of {known}{hint}",
    hint = hint(.0),
    known = StackMetric::ALL.map(StackMetric::as_str).join(", ")
)]
#[non_exhaustive]
pub struct StackMetricError(String);

impl fmt::Debug for StackMetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StackMetricError")
            .field(&self.to_string())
            .finish()
    }
}

fn hint(wrong: &str) -> String {
    did_you_mean(&similar(wrong, StackMetric::ALL.map(StackMetric::as_str)))
}

impl FromStr for StackMetric {
    type Err = StackMetricError;

    /// Accepts the names in the documentation of the variants. `device` means `cuda`, as in newer versions of torch.
    fn from_str(name: &str) -> Result<Self, StackMetricError> {
        let known = name.replace("device", "cuda");
        let mut all = Self::ALL.into_iter();
        all.find(|metric| metric.as_str() == known)
            .ok_or_else(|| StackMetricError(name.to_owned()))
    }
}

impl TryFrom<&str> for StackMetric {
    type Error = StackMetricError;

    fn try_from(name: &str) -> Result<Self, StackMetricError> {
        name.parse()
    }
}

impl TryFrom<String> for StackMetric {
    type Error = StackMetricError;

    fn try_from(name: String) -> Result<Self, StackMetricError> {
        name.parse()
    }
}

impl From<Infallible> for StackMetricError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_found_by_its_name() {
        for metric in StackMetric::ALL {
            assert_eq!(metric.as_str().parse(), Ok(metric));
        }
        let newer = "self_device_time_total".parse();
        assert_eq!(newer, Ok(StackMetric::SelfCudaTimeTotal));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "self_cpu_time".parse::<StackMetric>().unwrap_err();
        let error = error.to_string();
        for metric in StackMetric::ALL {
            assert!(error.contains(metric.as_str()), "{error}");
        }
    }
}
