//! How much the program reads.

use clap::Args;

/// The size limits of a file.
#[derive(Clone, Copy, Debug, Args)]
#[non_exhaustive]
pub struct Limits {
    /// Largest file that is read, in bytes after decompression.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.max_bytes)]
    pub max_bytes: u64,
    /// Most events that a trace may have.
    #[arg(long, value_name = "EVENTS", default_value_t = Limits::DEFAULT.max_events)]
    pub max_events: u64,
    /// Refuse a trace of which parts cannot be read.
    #[arg(skip)]
    pub is_whole: bool,
}

impl Limits {
    /// The limits without options: 2 GiB, and ten million events.
    pub const DEFAULT: Self = Self {
        max_bytes: 2 << 30,
        max_events: 10_000_000,
        is_whole: false,
    };
    /// The largest summary in bytes. Unlike a trace, it is in memory as a whole.
    pub const SUMMARY_BYTES: usize = 64 << 20;
    /// What the rows, nodes, notes and all other elements of a summary may take in memory, in bytes. Tables and pages are some
    /// times as large.
    pub const SUMMARY_MEMORY: usize = 128 << 20;
    /// The largest event in bytes.
    pub const EVENT_BYTES: usize = 4 << 20;
    /// The bytes of all different names.
    pub const NAMES_BYTES: usize = 256 << 20;
    /// How many different names events may have; the others have one name together. A summary of a program has at most as many
    /// rows.
    pub const NAMES: usize = 1 << 16;
    /// What a trace may take in memory, in bytes, whatever its size is.
    pub const MEMORY: u64 = 1 << 30;
    /// What a larger one may take, for each byte after decompression. No profiler writes events so short that they take more.
    pub const MEMORY_PER_BYTE: u64 = 8;
}
