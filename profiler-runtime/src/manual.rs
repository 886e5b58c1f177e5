//! The guide, and the pages on the command line, comparing runs, migration, tutorials, environment variables and accuracy.
//!
//! This module exists only in the documentation. Its pages are files of the folder `docs`, which the package contains.

// Examples with `…` in place of code are not Rust.
#![allow(rustdoc::invalid_rust_codeblocks)]

/// The guide: a page for each task.
pub mod guide {
    #[doc = include_str!("../docs/guide/functions.md")]
    pub mod functions {}

    #[doc = include_str!("../docs/guide/threads.md")]
    pub mod threads {}

    #[doc = include_str!("../docs/guide/spans.md")]
    pub mod spans {}

    #[doc = include_str!("../docs/guide/table.md")]
    pub mod table {}

    #[doc = include_str!("../docs/guide/gpu.md")]
    pub mod gpu {}

    #[doc = include_str!("../docs/guide/streams.md")]
    pub mod streams {}

    #[doc = include_str!("../docs/guide/frameworks.md")]
    pub mod frameworks {}

    #[doc = include_str!("../docs/guide/sensors.md")]
    pub mod sensors {}

    #[doc = include_str!("../docs/guide/loggers.md")]
    pub mod loggers {}

    #[doc = include_str!("../docs/guide/windows.md")]
    pub mod windows {}

    #[doc = include_str!("../docs/guide/kernels.md")]
    pub mod kernels {}

    #[doc = include_str!("../docs/guide/files.md")]
    pub mod files {}

    #[doc = include_str!("../docs/guide/production.md")]
    pub mod production {}
}

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

#[doc = include_str!("../docs/tutorials.md")]
pub mod tutorials {}
