//! Tables for people.

use profiler_host::diagnostics::printable;

use super::shorten::{TOO_SHORT_MARK, differ_when_cut, leave_out_shared_path, shorten, width};
use super::style::Style;

/// No table is made narrower than this.
pub(crate) const MIN_WIDTH: usize = 60;

/// Labels are not shortened to less than this.
const MIN_LABEL: usize = 16;

/// Cells of text are not shortened to less than this.
const MIN_TEXT: usize = 8;

/// Explains the mark that [`label`] gives to names.
pub(crate) const TOO_SHORT: &str = "~ most calls are too short to be timed one by one: totals, means and long single times are right, single times of \
     a few nanoseconds are rough";

/// Returns the label of a row. Names whose calls are too short to be timed individually are marked.
pub(crate) fn label(name: &str, is_too_short: bool) -> String {
    let mark = if is_too_short { TOO_SHORT_MARK } else { "" };
    format!("{mark}{}", printable(name))
}

/// Formats numbers of calls: `150/100` for all calls and those that were not recursive.
pub(crate) fn calls(all: u64, primitive: u64) -> String {
    if primitive == all {
        all.to_string()
    } else {
        format!("{all}/{primitive}")
    }
}

/// A column, with a cell for each row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: String,
    cells: Vec<String>,
    /// `true` for text, which is aligned to the left, shortened if needed, and may have several lines. Numbers are
    /// aligned to the right and never shortened.
    is_text: bool,
    /// `true` for names of functions, as the labels are.
    is_names: bool,
    /// The title of the group of columns that it belongs to, above its own.
    group: Option<&'static str>,
    /// Columns with high ranks are left out first; zero for one that always stays.
    rank: u8,
}

impl Column {
    pub(crate) fn numbers(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            title: title.into(),
            cells,
            is_text: false,
            is_names: false,
            group: None,
            rank: 0,
        }
    }

    pub(crate) fn text(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            is_text: true,
            ..Self::numbers(title, cells)
        }
    }

    pub(crate) fn names(title: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            is_names: true,
            ..Self::text(title, cells)
        }
    }

    /// Creates a column of numbers with a cell for each row; a dash if there is no value.
    pub(crate) fn of<'r, Row: 'r>(
        rows: impl IntoIterator<Item = &'r Row>,
        title: impl Into<String>,
        cell: impl Fn(&Row) -> Option<String>,
    ) -> Self {
        let cell = |row: &'r Row| cell(row).unwrap_or_else(|| "-".to_owned());
        Self::numbers(title, rows.into_iter().map(cell).collect())
    }

    pub(crate) fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    pub(crate) fn group(self, group: Option<&'static str>) -> Self {
        Self { group, ..self }
    }

    fn natural_width(&self) -> usize {
        widest(self.cells.iter().chain([&self.title]))
    }
}

/// A table, with labels on the left and columns beside them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) labels: Vec<String>,
    pub(crate) columns: Vec<Column>,
    /// The index of the row whose label stands out.
    pub(crate) hottest: Option<usize>,
}

/// The space between two columns, and between two groups of columns.
const GAP: usize = 2;
const GROUP_GAP: usize = 3;

impl Table {
    /// Draws the table, at most `width` columns wide, but not narrower than [`MIN_WIDTH`]. If it would be wider, columns
    /// are left out by their ranks, and then texts are shortened. A path that all names begin with is left out of them, and
    /// a line below the table says so.
    pub(crate) fn draw(mut self, width: usize, has_color: bool) -> String {
        let width = width.max(MIN_WIDTH);
        let cells = self.columns.iter_mut().filter(|column| column.is_names);
        let cells = cells.flat_map(|column| &mut column.cells);
        let left_out = leave_out_shared_path(self.labels.iter_mut().chain(cells));
        let widths = self.fit(width);
        self.shorten(&widths);
        let style = Style { has_color };
        let mut lines = Vec::new();
        if self.columns.iter().any(|column| column.group.is_some()) {
            lines.push(self.group_line(&widths, style));
        }
        let titles: Vec<&str> = self.columns.iter().map(|column| &*column.title).collect();
        let header = self.line(
            &widths,
            self.title,
            &titles,
            |text| style.title(text),
            Style::title,
            style,
        );
        lines.push(header);
        let rule = widths.iter().sum::<usize>() + self.gaps();
        lines.push(style.dim(&"─".repeat(rule)));
        for row in 0..self.labels.len() {
            self.push_row(&mut lines, row, &widths, style);
        }
        lines.extend(left_out);
        lines.join("\n") + "\n"
    }

    /// Leaves out columns until the others fit, and returns the widths.
    fn fit(&mut self, width: usize) -> Vec<usize> {
        let label = self.least_label(width);
        while self.least_width(label, width) > width && self.leave_one_out() {}
        self.widths(width)
    }

    /// Adds the lines of a row: as many as its cell with the most lines has.
    fn push_row(&self, lines: &mut Vec<String>, row: usize, widths: &[usize], style: Style) {
        let height = self
            .columns
            .iter()
            .map(|column| column.cells[row].split('\n').count());
        for line in 0..height.max().unwrap_or(1) {
            let cells: Vec<&str> = self
                .columns
                .iter()
                .map(|column| column.cells[row].split('\n').nth(line).unwrap_or(""))
                .collect();
            let label = if line == 0 { &*self.labels[row] } else { "" };
            let is_hottest = self.hottest == Some(row);
            let paint = |text: &str| {
                if is_hottest {
                    style.hottest(text)
                } else {
                    text.to_owned()
                }
            };
            lines.push(self.line(widths, label, &cells, paint, Style::value, style));
        }
    }

    fn line(
        &self,
        widths: &[usize],
        label: &str,
        cells: &[&str],
        paint_label: impl Fn(&str) -> String,
        paint: fn(Style, &str) -> String,
        style: Style,
    ) -> String {
        let [label_width, widths @ ..] = widths else {
            return String::new();
        };
        let mut line = paint_label(label) + &padding(label, *label_width);
        for (index, (cell, column_width)) in cells.iter().zip(widths).enumerate() {
            line += &" ".repeat(self.gap(index));
            let padding = padding(cell, *column_width);
            if self.columns[index].is_text {
                line.extend([paint(style, cell), padding]);
            } else {
                line.extend([padding, paint(style, cell)]);
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }

    /// Returns the line with the titles of groups, each centred over its columns.
    fn group_line(&self, widths: &[usize], style: Style) -> String {
        let mut line = " ".repeat(widths.first().copied().unwrap_or(0));
        let mut index = 0;
        for group in self.columns.chunk_by(|one, next| one.group == next.group) {
            line += &" ".repeat(self.gap(index));
            let inner: usize = (index + 1..index + group.len())
                .map(|column| self.gap(column))
                .sum();
            let span = inner
                + widths[index + 1..=index + group.len()]
                    .iter()
                    .sum::<usize>();
            line += &match group.first().and_then(|column| column.group) {
                Some(title) => style.dim(&centred(title, span)),
                None => " ".repeat(span),
            };
            index += group.len();
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }

    /// Returns the space before a column.
    fn gap(&self, index: usize) -> usize {
        let before = index
            .checked_sub(1)
            .and_then(|before| self.columns[before].group);
        if before == self.columns[index].group {
            GAP
        } else {
            GROUP_GAP
        }
    }

    fn gaps(&self) -> usize {
        (0..self.columns.len()).map(|index| self.gap(index)).sum()
    }

    /// Returns the width that labels get before columns: a quarter of the table, or what they need to differ, but at
    /// most half.
    fn least_label(&self, width: usize) -> usize {
        let natural = self.label_width();
        let quarter = (width / 4).max(20);
        if natural <= quarter {
            return natural;
        }
        let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        let half = (width / 2).max(quarter).min(natural);
        let different = (quarter..=half).find(|limit| differ_when_cut(&labels, *limit));
        different.unwrap_or(quarter)
    }

    /// Returns the width of the table if labels take `label` columns, and texts no more than their share of `width`.
    fn least_width(&self, label: usize, width: usize) -> usize {
        let texts = self.columns.iter().filter(|column| column.is_text).count();
        let share = width / 4 / texts.max(1);
        let columns = self.columns.iter().map(|column| {
            let natural = column.natural_width();
            if column.is_text {
                natural.min(share.max(MIN_TEXT))
            } else {
                natural
            }
        });
        label + columns.sum::<usize>() + self.gaps()
    }

    /// Leaves out the column with the highest rank, the last one of several. Returns `false` if all others must stay.
    fn leave_one_out(&mut self) -> bool {
        let columns = self.columns.iter().enumerate();
        let last = columns.max_by_key(|(_, column)| column.rank);
        match last {
            Some((index, column)) if column.rank > 0 => {
                self.columns.remove(index);
                true
            }
            _ => false,
        }
    }

    fn label_width(&self) -> usize {
        widest(&self.labels).max(self::width(self.title))
    }

    /// Returns the widths of the labels and of all columns. Numbers take what they need; texts share the rest, and short
    /// ones leave theirs to long ones.
    fn widths(&self, width: usize) -> Vec<usize> {
        let natural: Vec<usize> = std::iter::once(self.label_width())
            .chain(self.columns.iter().map(Column::natural_width))
            .collect();
        let is_text = |index: usize| index == 0 || self.columns[index - 1].is_text;
        let with_cap = |cap: usize| -> Vec<usize> {
            let natural = natural.iter().copied().enumerate();
            natural
                .map(|(index, natural)| match index {
                    0 => natural.min(cap.max(MIN_LABEL)),
                    index if is_text(index) => natural.min(cap.max(MIN_TEXT)),
                    _ => natural,
                })
                .collect()
        };
        let fits = |widths: &[usize]| {
            let sum: usize = widths.iter().sum();
            sum + self.gaps() <= width
        };
        if fits(&natural) {
            return natural;
        }
        // The largest cap that fits: between the two, one fits and the other does not.
        let (mut fitting, mut too_wide) = (0, width.saturating_add(1));
        while too_wide - fitting > 1 {
            let cap = usize::midpoint(fitting, too_wide);
            if fits(&with_cap(cap)) {
                fitting = cap;
            } else {
                too_wide = cap;
            }
        }
        with_cap(fitting)
    }

    /// Shortens labels and texts to the widths of their columns.
    fn shorten(&mut self, widths: &[usize]) {
        let [label_width, widths @ ..] = widths else {
            return;
        };
        let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        self.labels = shorten(&labels, *label_width);
        for (column, width) in self.columns.iter_mut().zip(widths) {
            if !column.is_text || column.natural_width() <= *width {
                continue;
            }
            let lines = column.cells.iter().flat_map(|cell| cell.split('\n'));
            let mut lines = shorten(&lines.collect::<Vec<&str>>(), *width).into_iter();
            for cell in &mut column.cells {
                let height = cell.split('\n').count();
                *cell = lines
                    .by_ref()
                    .take(height)
                    .collect::<Vec<String>>()
                    .join("\n");
            }
        }
    }
}

/// Returns the columns that the widest line takes.
fn widest<'t>(texts: impl IntoIterator<Item = &'t String>) -> usize {
    let widths = texts
        .into_iter()
        .flat_map(|text| text.split('\n').map(width));
    widths.max().unwrap_or(0)
}

/// Returns the spaces that pad a text to a width.
// `format!` cannot do it: it panics for widths above 65,535.
fn padding(text: &str, to: usize) -> String {
    " ".repeat(to.saturating_sub(width(text)))
}

/// Returns a title in the middle of a line of this width.
fn centred(title: &str, span: usize) -> String {
    let Some(line) = span.checked_sub(width(title) + 2) else {
        return title.to_owned() + &padding(title, span);
    };
    let (left, right) = (line / 2, line - line / 2);
    format!("{} {title} {}", "─".repeat(left), "─".repeat(right))
}

#[cfg(test)]
mod tests;
