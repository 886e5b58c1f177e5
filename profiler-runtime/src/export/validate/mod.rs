//! Whether the tools will read a trace as it is meant: ours, and those of PyTorch.

mod check;
mod event;
mod nesting;
mod read;
mod rule;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use self::check::Checker;
pub use rule::{Rule, Violation};

/// Why a trace could not be read at all. It is shown in words by `Debug` too.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// The file could not be read, or not be decompressed.
    #[error("cannot read the trace {}: {source}; check its name, and that it is whole", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Debug for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks a trace in the format of `chrome://tracing` as PyTorch writes it, `.json` or `.json.gz`: whether Perfetto,
/// TensorBoard's trace plugin (torch-tb-profiler 0.4.3), HTA (0.5) and speedscope read all of it, and get the right
/// numbers. An empty list says that they do.
///
/// Each [`Rule`] is a trap that one of them has; its documentation says what happens in it. Of each rule the first
/// hundred violations are listed.
///
/// The file is taken into memory whole.
///
/// # Errors
///
/// If the file cannot be read or decompressed. What is no JSON is a violation ([`Rule::Json`]).
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Rule, validate};
///
/// let path = std::env::temp_dir().join(format!("broken-{}.json", std::process::id()));
/// std::fs::write(&path, r#"{"traceEvents": [{"ph": "X", "name": "forward", "ts": 1.5, "dur": -2}]}"#)?;
/// for violation in validate(&path)? {
///     assert_eq!(violation.rule, Rule::Slice);
///     println!("{violation}");
/// }
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate(path: impl AsRef<Path>) -> Result<Vec<Violation>, ValidateError> {
    let path = path.as_ref();
    let bytes = read_file(path).map_err(|source| ValidateError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(validate_bytes(&bytes))
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?;
    let is_gzip = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    if is_gzip {
        MultiGzDecoder::new(file).read_to_end(&mut bytes)?;
    } else {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn validate_bytes(bytes: &[u8]) -> Vec<Violation> {
    let mut checker = Checker::default();
    match read::read(bytes, &mut checker) {
        Ok(()) => checker.finish(bytes),
        Err(error) => {
            let what =
                format!("{error}: the file is cut off, or was not written as JSON; write it again");
            vec![Violation::of_file(Rule::Json, what)]
        }
    }
}
