//! Finds functions that are measured twice: by the attribute, and by a span of `#[tracing::instrument]`.

use std::collections::HashMap;

use profiler_host::diagnostics::printable;
use profiler_report::Row;

use crate::name::{self, Name, Origin};

/// How many lines the attributes of one function may be apart.
const NEAR: u32 = 10;
/// The most functions that have a note of their own.
const SHOWN: usize = 5;

/// A function or a span, by its place and its path.
struct Measured<'r> {
    row: &'r Row,
    line: u32,
    module: &'r str,
}

/// Returns notes on functions with two rows. The first argument has the rows in the order of the second, which are the
/// numbers of their names.
pub(super) fn notes(rows: &[Row], numbers: &[u32]) -> Vec<String> {
    let mut spans = Vec::new();
    let mut functions: HashMap<_, Vec<Measured<'_>>> = HashMap::new();
    for (row, number) in rows.iter().zip(numbers) {
        let Some(name) = name::by_id(*number).filter(|name| name.origin == Origin::Function) else {
            continue;
        };
        let (key, measured) = place(row, name);
        // Only of spans the column is not known.
        if name.location.column() == 0 {
            spans.push((key, measured));
        } else {
            functions.entry(key).or_default().push(measured);
        }
    }
    let twice: Vec<(&str, &str)> = spans
        .iter()
        .filter_map(|(key, span)| {
            let mut functions = functions.get(key)?.iter();
            let function = functions.find(|function| is_one(function, span))?;
            Some((&*function.row.name, &*span.row.name))
        })
        .collect();
    let mut notes: Vec<String> = twice.iter().take(SHOWN).map(note).collect();
    let more = twice.len().saturating_sub(SHOWN);
    if more > 0 {
        notes.push(format!("… and {more} more functions have a row and a span"));
    }
    notes
}

/// Returns the file and the last part of a name's path, and what distinguishes it from others with these.
fn place<'r>(row: &'r Row, name: &'static Name) -> ((&'static str, &'r str), Measured<'r>) {
    // Names of one path have their places added.
    let path = row.name.split(" (").next().unwrap_or_default();
    let (module, last) = path.rsplit_once("::").unwrap_or(("", path));
    let measured = Measured {
        row,
        line: name.location.line(),
        module,
    };
    ((name.location.file(), last), measured)
}

/// Returns `true` if both are one function: the span has the module of the function, without its type, and their attributes
/// are near each other. Another function there with that name is not called as often.
fn is_one(function: &Measured<'_>, span: &Measured<'_>) -> bool {
    let rest = function.module.strip_prefix(span.module);
    let is_inside = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    // Each poll of a future may be a call of its span.
    let is_called_as_often = function.row.calls == span.row.calls || function.row.futures > 0;
    is_inside && function.line.abs_diff(span.line) <= NEAR && is_called_as_often
}

fn note((function, span): &(&str, &str)) -> String {
    let (function, span) = (printable(function), printable(span));
    format!(
        "`{span}` is the span of `{function}`, which an attribute measures too: each total has all of the time, and the self time \
         is that of the inner one; remove the attribute, or leave the span out with PROFILER_FILTER=-{span}"
    )
}
