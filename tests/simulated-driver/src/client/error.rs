//! Errors of the client.

use std::path::PathBuf;

/// Why a driver could not be installed, loaded or controlled.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// The path of the running program is unknown.
    #[error("cannot find this program's path, and so the simulated driver: {0}")]
    Program(#[source] std::io::Error),
    /// Cargo built no driver for the program.
    #[error(
        "no simulated driver next to {program}; add `simulated-driver` to the package's dependencies, \
         or build it first"
    )]
    NotBuilt {
        /// The running program.
        program: PathBuf,
    },
    /// The library cannot be loaded.
    #[error("cannot load {path} as a simulated driver: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The error of the system.
        source: libloading::Error,
    },
    /// A script contains a wrong command.
    #[error("the script was refused: {0}")]
    Script(String),
    /// A script contains a zero byte.
    #[error("a script must not contain a zero byte")]
    Zero,
    /// The pace of the clock is real, so it cannot be advanced.
    #[error("the real clock moves by itself; run `clock virtual` first")]
    RealClock,
    /// The report cannot be parsed.
    #[error("cannot read the report; are the driver and the test of one build? {0}")]
    Report(#[source] serde_json::Error),
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// An entry point cannot be hidden.
    #[error("cannot hide {symbol}: the library exports no such function, or is no 64-bit ELF file")]
    Hide {
        /// The entry point.
        symbol: String,
    },
}
