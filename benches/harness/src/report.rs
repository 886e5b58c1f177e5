//! What a bench has measured: tables of numbers, which are printed, and written as JSON to compare runs.

use std::fmt;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::options::{Options, Outcome};

/// The machine, without which the numbers mean nothing, and the tables.
#[derive(Debug, Serialize)]
pub struct Report {
    machine: String,
    tables: Vec<Table>,
}

impl Report {
    /// Begins a report: prints the processor, its hardware threads, and the first `rustc` in the path, which is normally the
    /// one that built the bench.
    pub fn begin() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let processor = processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let rustc = rustc().unwrap_or_else(|| "rustc not found".to_owned());
        let machine = format!("{processor}, {cores} cores; {rustc}");
        println!("{machine}\n");
        Self {
            machine,
            tables: Vec::new(),
        }
    }

    /// Prints a table, and keeps it for the file.
    pub fn show(&mut self, table: Table) {
        println!("{table}");
        self.tables.push(table);
    }

    /// Writes the report to the file that `--json` names, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn end(self, options: &Options) -> Outcome<()> {
        let Some(path) = &options.json else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(&self)? + "\n";
        std::fs::write(path, text).map_err(|error| {
            format!(
                "cannot write `{}`: {error}; name a file in a folder that exists",
                path.display()
            )
        })?;
        Ok(())
    }
}

fn processor() -> Option<String> {
    let table = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = table.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn rustc() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Adds a row of cells to a [`Table`]: `row!(table, "on", 19.3)`.
#[macro_export]
macro_rules! row {
    ($table:expr, $($cell:expr),+ $(,)?) => { $table.push(vec![$($crate::Cell::from($cell)),+]) };
}

/// A table. The first column is left-aligned, the others are right-aligned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    title: String,
    /// The names of the columns, and how many decimal places of their numbers are printed.
    columns: Vec<(String, usize)>,
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table. A number has all its digits in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// Nothing: it does not apply, or this system does not show it.
    Missing,
}

macro_rules! cells {
    ($($type:ty: $value:ident => $cell:expr;)*) => {
        $(impl From<$type> for Cell {
            fn from($value: $type) -> Self {
                $cell
            }
        })*
    };
}

cells! {
    &str: text => Self::Text(text.to_owned());
    String: text => Self::Text(text);
    f64: number => Self::Number(number);
    u64: number => Self::Number(number as f64);
    usize: number => Self::Number(number as f64);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Missing, Into::into)
    }
}

impl Table {
    /// Creates a table with columns such as `"variant | ns .2 | calls"`: a name, and how many decimal places of a number are
    /// printed, if there are any.
    pub fn new(title: impl Into<String>, columns: &str) -> Self {
        let column = |column: &str| match column.rsplit_once(" .") {
            Some((name, places)) => (name.trim().to_owned(), places.trim().parse().unwrap_or(0)),
            None => (column.trim().to_owned(), 0),
        };
        Self {
            title: title.into(),
            columns: columns.split('|').map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Creates a table of names and values, without a header.
    pub fn of_values<const ROWS: usize>(
        title: impl Into<String>,
        rows: [(&str, impl Into<Cell>); ROWS],
    ) -> Self {
        let mut table = Self::new(title, "| .1");
        for (name, value) in rows {
            table.push(vec![name.into(), value.into()]);
        }
        table
    }

    /// Adds a row; see [`row!`].
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let shown = |(cell, (_, places)): (&Cell, &(_, usize))| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => format!("{number:.places$}"),
            Cell::Missing => "-".to_owned(),
        };
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().zip(&self.columns).map(shown).collect());
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        writeln!(f, "{}", self.title)?;
        let has_header = self.columns.iter().any(|(name, _)| !name.is_empty());
        for row in rows.iter().skip(usize::from(!has_header)) {
            for (column, cell) in row.iter().enumerate() {
                let width = width(column);
                match column {
                    0 => write!(f, "{cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_another_process_hands_over_is_printed_the_same() {
        let mut table = Table::new("calls", "name | ns .1 | calls");
        row!(table, "on", 19.25, 7_u64);
        row!(table, "off", None::<f64>, "none");
        let text = serde_json::to_string(&table).unwrap();
        let read: Table = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read.to_string(),
            "calls\nname    ns  calls\non    19.2      7\noff      -   none\n"
        );
    }
}
