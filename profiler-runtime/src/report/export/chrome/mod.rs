//! The format of `chrome://tracing` as PyTorch writes it.

#[cfg(feature = "export")]
mod args;
pub(in crate::report::export) mod event_writer;
pub(in crate::report::export) mod launch_names;
#[cfg(feature = "export")]
mod nesting;
#[cfg(feature = "export")]
mod places;
#[cfg(feature = "export")]
mod timeline;
pub(in crate::report::export) mod times;
pub(in crate::report::export) mod work_args;

/// The tools treat every name that contains the first word as a step; in other names it is written as the second one.
pub(in crate::report::export) const STEP_NAMES: (&str, &str) = ("ProfilerStep", "Profiler Step");

/// The correlation before the first one. HTA (0.5) stores event indices in a column as wide as the correlations need,
/// and fails if 16 bits suffice for these but not for the indices.
pub(in crate::report::export) const CORRELATIONS: u64 = 100_000;

/// Few systems use thread ids from here on; Perfetto reads 32 bits.
pub(in crate::report::export) const FREE: u64 = 1 << 30;

/// TensorBoard's trace plugin reads at most this many devices.
pub(in crate::report::export) const MAX_DEVICE: u64 = 63;
