//! The packages whose tests are run, and the location of their sources.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// A package whose tests are run.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// The features for its tests, in addition to the default ones.
    pub(crate) features: &'static [&'static str],
    /// The folder of its sources.
    pub(crate) source: PathBuf,
}

/// The subjects that `crates.lock` covers, with their features: names of published crates, whose
/// versions `Cargo.toml` pins, and paths from this package, which contain a slash.
pub(crate) const SUBJECTS: &[(&str, &[&str])] = &[
    // Boxed futures of every form.
    ("async-trait", &[]),
    // `no_std` and unsafe code.
    ("bytes", &[]),
    // Generic code that is inlined everywhere, and panics in the middle of its loops.
    ("hashbrown", &[]),
    // Functions with `#[track_caller]`, and `const fn` next to other functions.
    ("slab", &[]),
    // A service in edition 2021: handlers, extractors, middleware, iterators and streams as return
    // types, recursion.
    ("./service", &[]),
    // Hand-written futures, services that forward futures, and tests that count polls.
    ("tower", &["full"]),
];

impl Subject {
    /// Returns a published crate, from the output of `cargo metadata` for this package.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest of this package does not depend on exactly one version of
    /// the crate.
    pub(crate) fn published(
        name: &'static str,
        features: &'static [&'static str],
        metadata: &Value,
    ) -> Result<Self, Error> {
        let missing = || Error::NotADependency(name);
        let packages = metadata["packages"].as_array().ok_or_else(missing)?;
        let version = packages
            .iter()
            .find(|package| package["name"] == env!("CARGO_PKG_NAME"))
            .and_then(|package| package["dependencies"].as_array())
            .and_then(|all| all.iter().find(|one| one["name"] == name))
            .and_then(|dependency| dependency["req"].as_str())
            .and_then(|requirement| requirement.strip_prefix('='))
            .ok_or_else(missing)?;
        let source = packages
            .iter()
            .find(|package| package["name"] == name && package["version"] == version)
            .and_then(|package| package["manifest_path"].as_str())
            .and_then(|manifest| Path::new(manifest).parent())
            .ok_or_else(missing)?;
        Ok(Self {
            name: name.to_owned(),
            features,
            source: source.to_owned(),
        })
    }

    /// Returns the package in a folder, from the output of `cargo metadata` for that folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder contains only a workspace.
    pub(crate) fn in_folder(
        source: PathBuf,
        features: &'static [&'static str],
        metadata: &Value,
    ) -> Result<Self, Error> {
        let manifest = source.join("Cargo.toml");
        let packages = metadata["packages"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let name = packages
            .iter()
            .find(|package| package["manifest_path"].as_str().map(Path::new) == Some(&*manifest))
            .and_then(|package| package["name"].as_str());
        match name {
            Some(name) => Ok(Self {
                name: name.to_owned(),
                features,
                source,
            }),
            None => Err(Error::NotAPackage(source)),
        }
    }
}
