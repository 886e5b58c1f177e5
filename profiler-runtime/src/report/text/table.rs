//! Tables for people.

use std::fmt::Write;

use crate::diagnostics::printable;

/// No label is shortened to fewer characters.
const MIN_LABEL: usize = 16;

/// Explains the mark that [`label`] gives to names.
pub(in crate::report) const TOO_SHORT: &str = "~ most calls are too short to be timed one by one: totals, means and long single times are right, single times of \
     a few nanoseconds are rough";

/// Returns the label of a row. Names whose calls are too short to be timed individually are marked.
pub(in crate::report) fn label(name: &str, is_too_short: bool) -> String {
    let mark = if is_too_short { "~ " } else { "" };
    format!("{mark}{}", printable(name))
}

/// Formats numbers of calls: `150/100` for all calls and those that were not recursive.
pub(in crate::report) fn calls(all: u64, primitive: u64) -> String {
    if primitive == all {
        all.to_string()
    } else {
        format!("{all}/{primitive}")
    }
}

/// Returns the width that a table may have: `given`, or the width of the terminal.
pub(in crate::report) fn width(given: Option<usize>) -> usize {
    given.or_else(terminal_width).unwrap_or(usize::MAX)
}

/// Returns the width of the first standard stream that is a terminal.
#[cfg(feature = "terminal")]
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| width.0.into())
}

#[cfg(not(feature = "terminal"))]
fn terminal_width() -> Option<usize> {
    None
}

/// A column, with a cell for each row.
pub(in crate::report) struct Column {
    title: String,
    pub(in crate::report) cells: Vec<String>,
    /// `true` for text, which is aligned to the left; numbers are aligned to the right.
    is_text: bool,
}

impl Column {
    pub(in crate::report) fn numbers(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            title: title.into(),
            cells,
            is_text: false,
        }
    }

    pub(in crate::report) fn text(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            is_text: true,
            ..Self::numbers(title, cells)
        }
    }

    /// Creates a column of numbers with a cell for each row; a dash if there is no value.
    pub(in crate::report) fn of<'r, Row: 'r>(
        rows: impl IntoIterator<Item = &'r Row>,
        title: impl Into<String>,
        cell: impl Fn(&Row) -> Option<String>,
    ) -> Self {
        let cell = |row: &'r Row| cell(row).unwrap_or_else(|| "-".to_owned());
        Self::numbers(title, rows.into_iter().map(cell).collect())
    }

    fn width(&self) -> usize {
        widest(self.cells.iter().chain([&self.title]))
    }
}

/// Draws a table with labels on the left and columns beside them. Labels are shortened if it would be wider than
/// `width`.
pub(in crate::report) fn draw(
    title: &str,
    labels: &[String],
    columns: &[Column],
    width: usize,
) -> String {
    let layout = Layout::new(title, labels, columns, width);
    let mut table = layout.line(title, columns.iter().map(|column| &*column.title));
    let _ = writeln!(table, "{}", "─".repeat(layout.width()));
    for (row, label) in labels.iter().enumerate() {
        let cells = columns.iter().map(|column| &*column.cells[row]);
        table += &layout.line(label, cells);
    }
    table
}

/// The widths of a table in characters.
struct Layout {
    label: usize,
    /// The width of each column, and `true` for one that is aligned to the left.
    columns: Vec<(usize, bool)>,
}

impl Layout {
    const GAP: &str = "  ";

    fn new(title: &str, labels: &[String], columns: &[Column], width: usize) -> Self {
        let widest_label = widest(labels).max(title.chars().count());
        let columns = columns
            .iter()
            .map(|column| (column.width(), column.is_text))
            .collect();
        let mut layout = Self { label: 0, columns };
        let left = width.saturating_sub(layout.width());
        layout.label = widest_label.min(left.max(MIN_LABEL));
        layout
    }

    fn width(&self) -> usize {
        let columns = self.columns.iter();
        self.label
            + columns
                .map(|(width, _)| Self::GAP.len() + width)
                .sum::<usize>()
    }

    fn line<'c>(&self, label: &str, cells: impl Iterator<Item = &'c str>) -> String {
        let label = shortened(label, self.label);
        let mut line = padding(&label, self.label);
        line.insert_str(0, &label);
        for (cell, (width, is_text)) in cells.zip(&self.columns) {
            let padding = padding(cell, *width);
            let (left, right) = if *is_text {
                (cell, &*padding)
            } else {
                (&*padding, cell)
            };
            line.extend([Self::GAP, left, right]);
        }
        line.truncate(line.trim_end_matches(' ').len());
        line + "\n"
    }
}

fn widest<'t>(texts: impl IntoIterator<Item = &'t String>) -> usize {
    let widths = texts.into_iter().map(|text| text.chars().count());
    widths.max().unwrap_or(0)
}

/// Returns the spaces that pad a text to a width.
// `format!` cannot do it: it panics for widths above 65,535.
fn padding(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// Cuts the middle out of a path, which says least: its crate and its function are kept.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let end = (width - 1) * 2 / 3;
    let start = width - 1 - end;
    let head: String = name.chars().take(start).collect();
    let tail: String = name.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `format!` pads to at most 65,535.
    #[test]
    fn cells_of_any_length_are_padded() {
        let long = "é".repeat(70_000);
        let labels = [long.clone(), "short".to_owned()];
        let columns = [
            Column::text("Text", vec![long.clone(), "-".to_owned()]),
            Column::numbers("Number", vec!["1".repeat(70_000), "2".to_owned()]),
        ];
        let table = draw("Name", &labels, &columns, usize::MAX);
        let lengths: Vec<usize> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [210_004; 4]);
        assert!(table.lines().nth(3).unwrap().ends_with(" 2"));
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = "application::model::layers::Attention::forward";
        let short = shortened(name, 24);
        assert_eq!(short.chars().count(), 24);
        assert!(
            short.starts_with("applicat…") && short.ends_with("Attention::forward"[3..].trim())
        );
        assert_eq!(shortened("main", 24), "main");
    }

    #[test]
    fn a_table_aligns_its_columns() {
        let labels = ["a", "long name"].map(str::to_owned);
        let columns = [
            Column::of(&[1, 200], "Calls", |calls| Some(calls.to_string())),
            Column::of(&[1, 200], "Time", |calls| {
                (*calls > 1).then(|| "7".to_owned())
            }),
            Column::text("Place", vec!["here".to_owned(), String::new()]),
        ];
        let table = draw("Name", &labels, &columns, usize::MAX);
        let expected = "\
Name       Calls  Time  Place
─────────────────────────────
a              1     -  here
long name    200     7
";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_narrow_table_shortens_labels_down_to_a_bound() {
        let labels = ["abcdefghijklmnopqrstuvwxyz".to_owned()];
        let columns = [Column::numbers("Calls", vec!["1".to_owned()])];
        let label = |width: usize| {
            let table = draw("Name", &labels, &columns, width);
            let line = table.lines().last().expect("a row");
            line.split(' ').next().map(|label| label.chars().count())
        };
        assert_eq!(label(usize::MAX), Some(26));
        assert_eq!(label(30), Some(23));
        assert_eq!(label(0), Some(MIN_LABEL));
    }

    #[test]
    fn recursive_calls_show_both_counts() {
        assert_eq!(calls(150, 100), "150/100");
        assert_eq!(calls(7, 7), "7");
    }
}
