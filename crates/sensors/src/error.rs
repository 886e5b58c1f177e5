//! Why the sensors cannot be read.

use profiler_host::debug_with_message;

/// Why the sensors cannot be read.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SensorError {
    /// The library cannot be loaded.
    #[error(
        "{name} cannot be loaded ({reason}): it comes with NVIDIA's driver; PROFILER_NVML_LIBRARY takes its path"
    )]
    NoLibrary {
        /// The library's path.
        name: String,
        /// What the system's loader says.
        reason: String,
    },
    /// The library lacks a function.
    #[error("{name} lacks {symbol}: update NVIDIA's driver")]
    TooOld {
        /// The library's path.
        name: String,
        /// The function.
        symbol: &'static str,
    },
    /// The library refuses to work.
    #[error("NVML cannot be used ({reason})")]
    Refused {
        /// NVML's code, and what it means.
        reason: String,
    },
    /// The library does not say which devices there are.
    #[error("NVML lists no devices ({reason})")]
    NotListed {
        /// NVML's code, and what it means.
        reason: String,
    },
    /// There is no device.
    #[error("NVML finds no device")]
    NoDevice,
    /// The crate was built without what loads libraries, or for a target that has none.
    #[error(
        "there are no sensors, since the program was built without what loads NVML: build it with the feature `cuda`"
    )]
    NotBuilt,
}

debug_with_message!(SensorError: NoLibrary, TooOld, Refused, NotListed, NoDevice, NotBuilt);
