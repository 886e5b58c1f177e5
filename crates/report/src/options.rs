//! The options of a table.

use std::fmt;

use super::sort::{SortKey, SortKeyError};
use super::text::style::Style;
use super::text::table::{MIN_WIDTH, Table};
use super::text::terminal::{self, OutputStream};
use super::text::{fill, width};

/// The options of a table of a [`Summary`](super::Summary) or of [`KeyAverages`](super::KeyAverages).
///
/// # Examples
///
/// ```
/// use profiler_report::{SortKey, TableOptions};
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
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
    pub(super) row_limit: Option<RowLimit>,
    pub(super) statistics: bool,
    pub(super) width: Option<usize>,
    /// `true` if the lines below the table are broken to its width.
    fills: bool,
    note_limit: RowLimit,
    /// What shows the notes beyond the limit.
    all_notes: &'static str,
    pub(super) color: Color,
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
            row_limit: None,
            statistics: false,
            width: None,
            fills: false,
            note_limit: RowLimit(Some(3)),
            all_notes: "`{:#}` or `TableOptions::note_limit` shows them",
            color: Color::Never,
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

    /// Sets how many rows are shown at most, 100 by default. `None` and negative numbers show all. A line below the table says
    /// how many there are beyond.
    pub fn row_limit(self, rows: impl Into<RowLimit>) -> Self {
        Self {
            row_limit: Some(rows.into()),
            ..self
        }
    }

    /// Adds columns that torch does not have: standard deviation, minimum, maximum and percentiles of times, the
    /// launch-bound verdict, allocations and peaks of memory.
    pub fn statistics(self, statistics: bool) -> Self {
        Self { statistics, ..self }
    }

    /// Sets the width in columns of a terminal. By default it is the value of the variable `COLUMNS`, or else the width
    /// of the first standard stream that is a terminal, or else 160.
    ///
    /// If the table would be wider, columns are left out and then names shortened, in the order that the guide
    /// describes: percentiles first, never the column that the rows are sorted by, and no name so far that two rows look
    /// alike. No table is narrower than 60 columns. [`to_json`](super::Summary::to_json) and
    /// [`to_csv`](super::Summary::to_csv) always have all values.
    pub fn width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }

    /// Sets how many notes stand below the table at most, 3 by default, the most useful first; a line says how many there
    /// are beyond. `None` and negative numbers show all, as `{:#}` does.
    pub fn note_limit(self, notes: impl Into<RowLimit>) -> Self {
        Self {
            note_limit: notes.into(),
            ..self
        }
    }

    /// Says what shows the notes beyond the limit, where that is not the library.
    #[doc(hidden)]
    pub fn all_notes_with(self, all_notes: &'static str) -> Self {
        Self { all_notes, ..self }
    }

    /// Sets whether the table has colours; by default it has none.
    pub fn color(self, color: Color) -> Self {
        Self { color, ..self }
    }

    /// Returns the options of a table that is formatted: with `{:#}`, it has all notes, and colours if standard output shows
    /// them.
    pub(super) fn for_display(f: &fmt::Formatter<'_>) -> Self {
        let options = Self {
            fills: OutputStream::Stdout.is_terminal(),
            ..Self::new()
        };
        if f.alternate() {
            options.color(Color::Auto).note_limit(None)
        } else {
            options
        }
    }

    /// Returns the options of the table at the end of the program, with all rows.
    #[doc(hidden)]
    pub fn for_stream(stream: OutputStream) -> Self {
        let color = if stream.has_color() {
            Color::Always
        } else {
            Color::Never
        };
        let width = stream.width();
        Self {
            fills: stream.is_terminal(),
            all_notes: "a summary in a text file (PROFILER_SUMMARY=summary.txt) has them",
            ..Self::new().row_limit(None).width(width).color(color)
        }
    }

    /// Returns these options with a limit of the rows that applies if they set none.
    pub(super) fn or_row_limit(&self, rows: Option<RowLimit>) -> Self {
        Self {
            row_limit: self.row_limit.or(rows),
            ..self.clone()
        }
    }

    /// Keeps the rows that the table shows. Returns how many were removed.
    pub(super) fn limit<Row>(&self, rows: &mut Vec<Row>) -> usize {
        let limit = self.row_limit.unwrap_or(RowLimit(Some(100)));
        limit.truncate(rows)
    }

    /// Draws a table with the width and the colours that are set.
    pub(super) fn draw(&self, table: Table) -> String {
        table.draw(self.columns(), self.style().has_color)
    }

    /// Returns the width in columns that is set, but not less than a table has.
    pub(super) fn columns(&self) -> usize {
        let width = self.width.unwrap_or_else(terminal::width);
        width.max(MIN_WIDTH)
    }

    /// Returns the colours that are set.
    pub(super) fn style(&self) -> Style {
        Style {
            has_color: match self.color {
                Color::Never => false,
                Color::Always => true,
                Color::Auto => OutputStream::Stdout.has_color(),
            },
        }
    }

    /// Appends notes, at most as many as the limit, to the lines below a table.
    pub(super) fn push_notes(&self, lines: &mut String, mut notes: Vec<String>) {
        let hidden = self.note_limit.truncate(&mut notes);
        let more = match hidden {
            0 => None,
            1 => Some("… and 1 more note".to_owned()),
            _ => Some(format!("… and {hidden} more notes")),
        };
        notes.extend(more.map(|more| format!("{more}: {}", self.all_notes)));
        for note in notes {
            lines.push_str(&note);
            lines.push('\n');
        }
    }

    /// Breaks the lines below a table on a terminal where they are wider than it. Elsewhere they stay whole, as programs that
    /// read them expect.
    pub(super) fn fill(&self, table: &str, lines: String) -> String {
        /// Below that, notes are hard to read.
        const NARROWEST: usize = 80;

        if !self.fills {
            return lines;
        }
        // A line with colours has letters that take no place; the rule below the titles has none.
        let plain = table.lines().filter(|line| !line.contains('\x1b'));
        let widest = plain.map(width).max().unwrap_or(0);
        let available = self.width.unwrap_or_else(terminal::width);
        fill(&lines, available.min(widest.max(NARROWEST)))
    }
}

/// When a table has colours.
///
/// # Examples
///
/// ```
/// use profiler_report::{Color, TableOptions};
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// let options = TableOptions::new().color(Color::Auto);
/// println!("{}", summary().table(&options));
/// println!("{:#}", summary()); // as above
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Color {
    /// Never: the text may be written anywhere.
    #[default]
    Never,
    /// If standard output is a terminal. The variables `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` are respected.
    Auto,
    /// Always.
    Always,
}

/// How many rows a table shows at most: made from a number, where negative numbers stand for all rows, or from an
/// `Option<usize>`.
///
/// # Examples
///
/// ```
/// use profiler_report::TableOptions;
///
/// assert_eq!(TableOptions::new().row_limit(-1), TableOptions::new().row_limit(None));
/// assert_eq!(TableOptions::new().row_limit(10), TableOptions::new().row_limit(Some(10)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimit(Option<usize>);

impl RowLimit {
    /// Keeps the first rows, as many as the limit allows. Returns how many were removed.
    fn truncate<Row>(self, rows: &mut Vec<Row>) -> usize {
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
    use crate::{Row, Summary, Times};

    #[test]
    fn rows_with_a_limit_show_no_more_unless_the_options_set_another_one() {
        let row = |index: u64| Row {
            name: format!("f{index}"),
            cpu: Some(Times::default()),
            ..Row::default()
        };
        let summary = Summary {
            rows: (0..120).map(row).collect(),
            ..Summary::default()
        };
        // Before or after sorting, the limit is the same.
        let averages = summary.key_averages().row_limit(3).sort_by("name");
        let summary = summary.sort_by("name").row_limit(3);
        for table in [summary.to_string(), averages.to_string()] {
            assert!(table.contains("\n… and 117 more\n"), "{table}");
            let rows = table.lines().filter(|line| line.starts_with('f'));
            assert_eq!(rows.count(), 3, "{table}");
        }
        let options = TableOptions::new().row_limit(5);
        for table in [summary.table(&options), averages.table(&options)] {
            assert!(table.contains("\n… and 115 more\n"), "{table}");
        }
        let all = averages.row_limit(-1);
        assert!(!all.to_string().contains("more"), "{all}");
        assert_eq!(all.to_csv().lines().count(), 121);
        assert_eq!(summary.to_csv().lines().count(), 121);
    }

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
