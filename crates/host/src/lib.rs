//! What a library does in a process that is not its own, without getting in its way.
//!
//! It survives the process's forks, runs at its exit, leaves its signals to it, writes files that readers never see half,
//! warns once, and waits for none of its threads while these run its own code. It is a part of
//! [`profiler-runtime`](https://docs.rs/profiler-runtime), has what that needs, and changes with it.
//!
//! - [`process`]: forks, exit handlers, signals, output, the system.
//! - [`sync`]: locks that survive a fork, rings, and requests.
//! - [`background`]: a thread of the library's own.
//! - [`diagnostics`]: warnings, and code that may panic.
//! - [`rank`]: which process of its job this one is.
//!
//! # Examples
//!
//! ```
//! use profiler_host::diagnostics::{notices, warn_once};
//!
//! warn_once("PROFILER_RING=many is not a number; 4096 is used");
//! warn_once("PROFILER_RING=many is not a number; 4096 is used");
//! assert_eq!(notices().len(), 1);
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::inline_always,
    reason = "the measured path must compile to two functions, with everything inside of them"
)]
#![allow(
    clippy::new_without_default,
    clippy::len_without_is_empty,
    reason = "it has what its user calls"
)]

pub mod background;
pub mod diagnostics;
pub mod ending;
mod error_debug;
pub mod process;
pub mod rank;
pub mod sync;
