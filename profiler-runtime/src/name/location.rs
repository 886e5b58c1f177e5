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
