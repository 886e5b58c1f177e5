//! The options of a table.

use super::sort::{SortKey, SortKeyError};

/// The options of a table of a [`Summary`](super::Summary) or of [`KeyAverages`](super::KeyAverages).
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::{SortKey, TableOptions};
/// use profiler_runtime::summary;
///
/// let options = TableOptions::new().sort_by(SortKey::SelfCpuTimeTotal).row_limit(10);
/// println!("{}", summary().table(&options));
///
/// let as_in_torch = TableOptions::new().sort_by("self_cuda_time_total").row_limit(-1);
/// println!("{}", summary().key_averages().table(&as_in_torch));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until they are given to `table`"]
pub struct TableOptions {
    pub(super) sort_by: Option<Result<SortKey, SortKeyError>>,
    pub(super) row_limit: RowLimit,
    pub(super) statistics: bool,
    pub(super) width: Option<usize>,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl TableOptions {
    /// Creates the default options: at most 100 rows, in the order in which they are.
    pub const fn new() -> Self {
        Self {
            sort_by: None,
            row_limit: RowLimit(Some(100)),
            statistics: false,
            width: None,
        }
    }

    /// Sets the value that rows are sorted by, as a [`SortKey`] or its name; by default they keep their order.
    ///
    /// If the name is not valid, the rows keep their order, a line below the table lists the valid names, and a warning
    /// is emitted once: a report never fails for its options. `name.parse::<SortKey>()` returns the error instead.
    pub fn sort_by(self, key: impl TryInto<SortKey, Error: Into<SortKeyError>>) -> Self {
        Self {
            sort_by: Some(key.try_into().map_err(Into::into)),
            ..self
        }
    }

    /// Sets how many rows are shown at most, 100 by default. `None` and negative numbers show all.
    pub fn row_limit(self, rows: impl Into<RowLimit>) -> Self {
        Self {
            row_limit: rows.into(),
            ..self
        }
    }

    /// Adds columns that torch does not have: standard deviation, minimum, maximum and percentiles of times, the
    /// launch-bound verdict, allocations and peaks of memory.
    pub fn statistics(self, statistics: bool) -> Self {
        Self { statistics, ..self }
    }

    /// Sets the width in characters: by default that of the terminal, or unlimited without one. Long names are
    /// shortened in the middle, numbers never.
    pub fn width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }
}

/// How many rows a table shows at most: made from a number, where negative numbers stand for all rows, or from an
/// `Option<usize>`.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::TableOptions;
///
/// assert_eq!(TableOptions::new().row_limit(-1), TableOptions::new().row_limit(None));
/// assert_eq!(TableOptions::new().row_limit(10), TableOptions::new().row_limit(Some(10)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimit(Option<usize>);

impl RowLimit {
    /// Keeps the first rows, as many as the limit allows. Returns how many were removed.
    pub(super) fn truncate<Row>(self, rows: &mut Vec<Row>) -> usize {
        let hidden = rows.len().saturating_sub(self.0.unwrap_or(usize::MAX));
        rows.truncate(rows.len() - hidden);
        hidden
    }
}

impl From<Option<usize>> for RowLimit {
    fn from(rows: Option<usize>) -> Self {
        Self(rows)
    }
}

/// Numbers that do not fit into `usize` are negative, or more rows than there can be.
macro_rules! from_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for RowLimit {
            fn from(rows: $number) -> Self {
                Self(usize::try_from(rows).ok())
            }
        }
    )*};
}

from_numbers!(i32 i64 isize u32 u64 usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_keeps_the_first_rows() {
        let kept = |limit: RowLimit| {
            let mut rows = vec!['a', 'b', 'c'];
            let hidden = limit.truncate(&mut rows);
            (rows.into_iter().collect::<String>(), hidden)
        };
        let all = ("abc".to_owned(), 0);
        assert_eq!(kept(2.into()), ("ab".to_owned(), 1));
        assert_eq!(kept(0.into()), (String::new(), 3));
        assert_eq!(kept(7_u32.into()), all);
        assert_eq!(kept((-1).into()), all);
        assert_eq!(kept(None.into()), all);
        assert_eq!(kept(u64::MAX.into()), all);
    }
}
