//! An NVTX tool that writes each call down, for tests.
//!
//! Programs load the library as they load the one of Nsight Systems: by its path in `NVTX_INJECTION64_PATH`. It reads two
//! variables. [`FILE`] is the path of the file that gets one line for each call. [`FAULTS`] lists what the tool lacks,
//! separated by spaces: `refuse`, `module=5` (asks for no functions of this module), `function=5.10` (leaves this
//! entry of a module alone), `push=3` (does not write down the third range that is pushed).
//!
//! [`Call::read_all`] reads the file. The tool checks what it gets: a call that breaks the rules of NVTX is written down
//! as [`Call::Wrong`].

mod client;
mod tool;

pub use client::{Call, Line, Range, built, found};

/// The variable with the path of the file that is written.
pub const FILE: &str = "NVTX_RECORDER_FILE";

/// The variable that lists what the tool lacks.
pub const FAULTS: &str = "NVTX_RECORDER_FAULTS";

/// The variable by which programs find the tool.
pub const INJECTION: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};
