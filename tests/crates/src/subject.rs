//! The published crates whose tests are run, and the location of their sources.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// A published crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// The features for its tests, in addition to the default ones.
    pub(crate) features: &'static [&'static str],
}

/// All crates. `Cargo.toml` pins their versions.
pub(crate) const SUBJECTS: &[Subject] = &[
    // Boxed futures of every form.
    Subject::new("async-trait", &[]),
    // `no_std` and unsafe code.
    Subject::new("bytes", &[]),
    // Generic code that is inlined everywhere, and panics in the middle of its loops.
    Subject::new("hashbrown", &[]),
    // Many small generic functions, iterators as return types, recursion.
    Subject::new("petgraph", &[]),
    // Functions with `#[track_caller]`, and `const fn` next to other functions.
    Subject::new("slab", &[]),
    // Hand-written futures, services that forward futures, and tests that count polls.
    Subject::new("tower", &["full"]),
];

impl Subject {
    const fn new(name: &'static str, features: &'static [&'static str]) -> Self {
        Self { name, features }
    }

    /// Returns the folder of the crate's sources, from the output of `cargo metadata` for this
    /// package.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest of this package does not depend on exactly one version of
    /// the crate.
    pub(crate) fn source(self, metadata: &Value) -> Result<PathBuf, Error> {
        let missing = || Error::NotADependency(self.name);
        let packages = metadata["packages"].as_array().ok_or_else(missing)?;
        let version = packages
            .iter()
            .find(|package| package["name"] == env!("CARGO_PKG_NAME"))
            .and_then(|package| package["dependencies"].as_array())
            .and_then(|all| all.iter().find(|one| one["name"] == self.name))
            .and_then(|dependency| dependency["req"].as_str())
            .and_then(|requirement| requirement.strip_prefix('='))
            .ok_or_else(missing)?;
        packages
            .iter()
            .find(|package| package["name"] == self.name && package["version"] == version)
            .and_then(|package| package["manifest_path"].as_str())
            .and_then(|manifest| Path::new(manifest).parent())
            .map(Path::to_owned)
            .ok_or_else(missing)
    }
}
