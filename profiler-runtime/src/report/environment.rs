//! Where and how the times were measured.

/// Where and how the times were measured: what must agree before two summaries may be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Environment {
    /// The name of the program's file.
    pub program: String,
    /// The system's id of the process.
    pub process: u32,
    /// The rank of the process in its job, if a launcher set one.
    pub rank: Option<u64>,
    /// The name of the machine.
    pub host: String,
    /// The operating system and the processor's architecture, such as `linux x86_64`.
    pub system: String,
    /// The number of processors that the program may use.
    pub processors: u32,
    /// `true` if the profiler was compiled with debug assertions, as in a development build.
    pub debug_build: bool,
    /// The version of the profiler.
    pub profiler_version: String,
    /// The names of the CUDA devices, by ordinal; empty if CUDA is not used.
    pub devices: Vec<String>,
    /// The version of CUDA that the driver supports, such as `13.0`; `None` if CUDA is not used.
    pub driver: Option<String>,
    /// The `PROFILER_*` variables that were set, with their values, by name.
    pub settings: Vec<(String, String)>,
    /// When the profiler was first used, in nanoseconds since the Unix epoch.
    pub start_unix_ns: i64,
}
