//! Where a name stands in the source.

use std::fmt;
use std::panic::Location;

/// A place in the source: of the first call site of a name, or of a span of `tracing`.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::SourceLocation;
///
/// let here = SourceLocation::from(std::panic::Location::caller());
/// assert!(here.file().ends_with(".rs") && here.line() > 0);
/// assert_eq!(here.to_string(), format!("{}:{}:{}", here.file(), here.line(), here.column()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    file: &'static str,
    line: u32,
    column: u32,
}

impl SourceLocation {
    /// Creates the location of a span, whose column `tracing` does not know.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) const fn of_line(file: &'static str, line: u32) -> Self {
        Self {
            file,
            line,
            column: 0,
        }
    }

    /// Returns the path of the file, as the compiler was given it. Empty if it is not known.
    #[must_use]
    pub const fn file(self) -> &'static str {
        self.file
    }

    /// Returns the path of the file as it is written to files: that of a file outside of the workspace begins with the folder of
    /// its crate, `crate-1.0/src/lib.rs`, since folders above it may name a user.
    pub(crate) fn file_from_crate(self) -> &'static str {
        from_crate(self.file)
    }

    /// Returns the place as it is written to files: `src/model.rs:51`.
    pub(crate) fn in_files(self) -> String {
        format!("{}:{}", self.file_from_crate(), self.line)
    }

    /// Returns the line, counted from 1; 0 if it is not known.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.line
    }

    /// Returns the column, counted from 1; 0 if it is not known, as for spans of `tracing`.
    #[must_use]
    pub const fn column(self) -> u32 {
        self.column
    }
}

/// The folders of a crate that hold sources.
const SOURCES: [&str; 4] = ["src", "tests", "examples", "benches"];

/// Returns the part of an absolute path from the folder of the crate on: the one around the last folder of sources, or below
/// an index of Cargo's registry. Without either, the name of the file. A relative path is one of the workspace.
fn from_crate(file: &str) -> &str {
    let is_separator = |letter: char| matches!(letter, '/' | '\\');
    let has_drive = file.as_bytes().get(1) == Some(&b':');
    if !file.starts_with(is_separator) && !has_drive {
        return file;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for part in file.split(is_separator) {
        parts.push((start, part));
        start += part.len() + 1;
    }
    let is =
        |at: usize, names: &[&str]| parts.get(at).is_some_and(|(_, part)| names.contains(part));
    let crates = (0..parts.len()).find(|at| is(*at, &["registry"]) && is(at + 1, &["src"]));
    let in_registry = crates.map(|at| at + 3);
    // What a build script writes: the folder has the name of the package.
    let is_out = |at: usize| is(at, &["build"]) && is(at + 2, &["out"]);
    let generated = (0..parts.len()).find(|at| is_out(*at)).map(|at| at + 1);
    let around_sources = || {
        // The last part is the file.
        let last = (1..parts.len().saturating_sub(1)).rfind(|at| is(*at, &SOURCES));
        last.map(|at| at - 1)
    };
    let file_name = parts.len() - 1;
    let names_user =
        |first: &usize| is(*first, &["root"]) || *first > 0 && is(*first - 1, &["home", "Users"]);
    let first = in_registry.or(generated).or_else(around_sources);
    let first = first.filter(|first| !names_user(first));
    let first = first.map_or(file_name, |first| first.min(file_name));
    parts.get(first).map_or("", |(start, _)| &file[*start..])
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: location.file(),
            line: location.line(),
            column: location.column(),
        }
    }
}

/// Writes `file:line:column`, without a column that is not known.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::from_crate;

    #[test]
    fn a_place_outside_of_the_workspace_begins_with_its_crate() {
        for (file, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("crates/host/src/lib.rs", "crates/host/src/lib.rs"),
            ("../beside/src/lib.rs", "../beside/src/lib.rs"),
            (
                "/home/alice/.cargo/registry/src/index.crates.io-6f17/crate-1.0/src/lib.rs",
                "crate-1.0/src/lib.rs",
            ),
            (
                "/home/alice/.cargo/registry/src/index.crates.io-6f17/crate-1.0/src/src/deep.rs",
                "crate-1.0/src/src/deep.rs",
            ),
            (
                "/home/alice/.cargo/git/checkouts/repo-1a2b/3c4d/inner/src/a/b.rs",
                "inner/src/a/b.rs",
            ),
            ("/home/alice/secret/pplib/src/lib.rs", "pplib/src/lib.rs"),
            (
                "/home/alice/src/proj/target/debug/build/proj-1a2b/out/gen.rs",
                "proj-1a2b/out/gen.rs",
            ),
            ("/home/alice/src/proj/build.rs", "build.rs"),
            (r"C:\Users\alice\src\client\mod.rs", "mod.rs"),
            ("/root/src/client/mod.rs", "mod.rs"),
            ("/home/alice/src/pplib/tests/it.rs", "pplib/tests/it.rs"),
            ("C:\\Users\\alice\\pplib\\src\\lib.rs", "pplib\\src\\lib.rs"),
            ("/home/alice/build.rs", "build.rs"),
            ("/src/lib.rs", "/src/lib.rs"),
            ("/registry/src/x", "x"),
            ("", ""),
        ] {
            assert_eq!(from_crate(file), expected, "{file}");
        }
    }
}
