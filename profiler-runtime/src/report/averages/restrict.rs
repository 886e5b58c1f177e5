//! Which rows are kept, as `pstats` has it.

use std::fmt;

use regex_lite::Regex;

use super::KeyAverages;

/// Which rows are kept: made from a number, a fraction or a regular expression.
///
/// See [`KeyAverages::restrict`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// So many of the first rows.
    First(usize),
    /// Such a part of the first rows, from 0 to 1, rounded to whole rows.
    Part(f64),
    /// Those whose name this regular expression is found in (the syntax is that of the `regex-lite` crate).
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

/// A restriction that cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictionError {
    /// The fraction is none.
    #[error(
        "{0} is no part of the rows: give a fraction from 0 to 1, or a whole number for so many rows"
    )]
    Part(f64),
    /// The regular expression cannot be read.
    #[error(
        "`{pattern}` is no regular expression: {reason}; put a `\\` before what is to be found as it stands"
    )]
    Pattern {
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

pub(super) fn restrict(
    mut averages: KeyAverages,
    to: &Restriction,
) -> Result<KeyAverages, RestrictionError> {
    let before = averages.rows.len();
    match to {
        Restriction::First(rows) => averages.rows.truncate(*rows),
        Restriction::Part(part) => averages.rows.truncate(part_of(before, *part)?),
        Restriction::Name(pattern) => {
            let regex = Regex::new(pattern).map_err(|error| RestrictionError::Pattern {
                pattern: pattern.clone(),
                reason: error.to_string(),
            })?;
            averages.rows.retain(|row| regex.is_match(&row.name));
        }
    }
    let after = averages.rows.len();
    if after < before {
        averages
            .notes
            .push(format!("{after} of {before} rows, restricted to {to}"));
    }
    Ok(averages)
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
