//! The repository that the documents and the code are in.

use std::path::Path;

/// The root of the repository: the folder above this package that has CONTRIBUTING.md.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("CONTRIBUTING.md").exists())
        .unwrap()
}
