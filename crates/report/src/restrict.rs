//! Filtering rows, as in `pstats`.

use std::fmt;

use profiler_host::debug_with_message;
use regex_lite::Regex;

use super::row::Row;

/// A filter for rows: made from an integer, a fraction or a regular expression.
///
/// See [`Summary::restrict`](super::Summary::restrict) and [`KeyAverages::restrict`](super::KeyAverages::restrict).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// Keeps this many of the first rows.
    First(usize),
    /// Keeps this fraction of the rows, from 0 to 1, rounded to whole rows.
    Part(f64),
    /// Keeps rows whose name matches this regular expression (in the syntax of the crate `regex-lite`).
    Name(String),
}

impl From<usize> for Restriction {
    fn from(rows: usize) -> Self {
        Self::First(rows)
    }
}

impl From<f64> for Restriction {
    fn from(part: f64) -> Self {
        Self::Part(part)
    }
}

impl From<&str> for Restriction {
    fn from(pattern: &str) -> Self {
        Self::Name(pattern.to_owned())
    }
}

impl From<String> for Restriction {
    fn from(pattern: String) -> Self {
        Self::Name(pattern)
    }
}

impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First(rows) => write!(f, "{rows}"),
            Self::Part(part) => write!(f, "{part}"),
            Self::Name(pattern) => write!(f, "{pattern:?}"),
        }
    }
}

/// A filter that is not valid.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictionError {
    /// The fraction is not between 0 and 1.
    #[error("{0} is not a fraction of the rows: give one from 0 to 1, or a whole number of rows")]
    Part(f64),
    /// The regular expression is not valid.
    #[error(
        "`{pattern}` is not a regular expression: {reason}; put a `\\` before special characters"
    )]
    Pattern {
        /// The regular expression.
        pattern: String,
        /// The error of the parser.
        reason: String,
    },
}

debug_with_message!(RestrictionError: Part, Pattern);

/// Filters rows. Returns a note if any row was removed.
pub(super) fn restrict(
    rows: &mut Vec<Row>,
    to: &Restriction,
) -> Result<Option<String>, RestrictionError> {
    let before = rows.len();
    match to {
        Restriction::First(first) => rows.truncate(*first),
        Restriction::Part(part) => rows.truncate(part_of(before, *part)?),
        Restriction::Name(pattern) => {
            let regex = Regex::new(pattern).map_err(|error| RestrictionError::Pattern {
                pattern: pattern.clone(),
                reason: error.to_string(),
            })?;
            rows.retain(|row| regex.is_match(&row.name));
        }
    }
    let after = rows.len();
    Ok((after < before)
        .then(|| format!("{after} of {before} rows, restricted to {to} (percentages of all)")))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a number of rows is one"
)]
fn part_of(rows: usize, part: f64) -> Result<usize, RestrictionError> {
    if (0.0..=1.0).contains(&part) {
        Ok((rows as f64 * part + 0.5) as usize)
    } else {
        Err(RestrictionError::Part(part))
    }
}
