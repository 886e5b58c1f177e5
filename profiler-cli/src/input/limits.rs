//! How much the program reads.

use clap::Args;

/// The size limits of files.
#[derive(Clone, Copy, Debug, Args)]
#[non_exhaustive]
pub struct Limits {
    /// The largest trace that is read, in bytes after decompression.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.max_bytes)]
    pub max_bytes: u64,
}

impl Limits {
    /// The limits without options.
    pub const DEFAULT: Self = Self { max_bytes: 4 << 30 };
}
