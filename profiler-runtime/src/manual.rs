//! The guide, and the pages on the command line, comparing runs, migration, environment variables and accuracy.
//!
//! This module exists only in the documentation. Its pages are files of the folder `docs`, which the package contains.

// Examples with `…` in place of code are not Rust.
#![allow(rustdoc::invalid_rust_codeblocks)]

#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[doc = include_str!("../docs/command-line.md")]
pub mod command_line {}

#[doc = include_str!("../docs/environment.md")]
pub mod environment {}

#[doc = include_str!("../docs/comparing-runs.md")]
pub mod comparing_runs {}

#[doc = include_str!("../docs/accuracy.md")]
pub mod accuracy {}

#[doc = include_str!("../docs/migration.md")]
pub mod migration {}
