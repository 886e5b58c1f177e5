//! The format of `chrome://tracing` as PyTorch writes it.

mod args;
mod event_writer;
mod header;
#[cfg(feature = "trace")]
mod launch_category;
mod launch_names;
mod memory;
mod nesting;
mod occupancy;
mod places;
mod stand_ins;
pub(crate) mod timeline;
mod times;
mod work_args;
mod written_name;

#[cfg(feature = "trace")]
pub use launch_category::LaunchCategory;

/// The name of a slice without length, as a JSON string: it keeps TensorBoard's trace plugin from merging a scope with the
/// only scope inside it, of its name.
const RECURSION: &str = r#""[recursion]""#;

/// The key of the table of names in the head of a file.
pub(crate) const NAME_TABLE: &str = "nameTable";

/// The category of launches, as PyTorch writes it since 2.0.
pub const LAUNCHES: &str = "cuda_runtime";

/// The correlation before the first one. HTA (0.5) stores event indices in a column as wide as the correlations need,
/// and fails if 16 bits suffice for these but not for the indices.
pub const CORRELATIONS: u64 = 100_000;

/// Few systems use thread ids from here on; Perfetto reads 32 bits.
const FREE: u64 = 1 << 30;

/// TensorBoard's trace plugin reads at most this many devices.
const MAX_DEVICE: u64 = 63;
