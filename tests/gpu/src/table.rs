//! The figures of a run as tables in Markdown, for the project's documents: no figure is copied by hand.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use profiler_report::internal::utc;
use serde::Deserialize;

use crate::device::About;
use crate::findings::{Figure, Outcome};
use crate::machine::Machine;
use crate::neighbours::Neighbours;
use crate::trouble::Trouble;

/// The themes whose figures are shown: how accurate readings are, and what they cost.
const THEMES: [&str; 11] = [
    "start",
    "kernels of windows",
    "readings of sensors",
    "places",
    "lengths",
    "beside others",
    "beside CUPTI",
    "launches under CUPTI",
    "host cost",
    "slowdown",
    "cost with CUPTI",
];

/// The JSON of a run, as far as the tables need it.
#[derive(Debug, Deserialize)]
struct Saved {
    began: i64,
    seconds: f64,
    machine: Machine,
    device: Option<About>,
    neighbours: Option<Neighbours>,
    complete: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: Vec<SavedCheck>,
}

#[derive(Debug, Deserialize)]
struct SavedCheck {
    theme: String,
    name: String,
    outcome: Outcome,
    reasons: Vec<String>,
    figures: Vec<Figure>,
}

/// Returns the tables of a file with the JSON of a run.
pub(crate) fn markdown(path: &Path) -> Result<String, Trouble> {
    let saved: Saved = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let Some(device) = &saved.device else {
        let reason = "the run had no device, and so no figures";
        return Err(Trouble::Missing(reason.to_owned()));
    };
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = saved.head(device, &mut text);
    for theme in THEMES {
        let of_theme = saved.checks.iter().filter(|check| check.theme == theme);
        for check in of_theme.filter(|check| !check.figures.is_empty()) {
            let _ = check.table(&mut text);
        }
    }
    Ok(text)
}

impl Saved {
    fn head(&self, device: &About, text: &mut String) -> std::fmt::Result {
        let date = utc(self.began.saturating_mul(1_000_000_000));
        let date = date.as_deref().unwrap_or("at an unknown time");
        writeln!(text, "### {device}, {date}\n")?;
        writeln!(text, "On {}.", self.machine)?;
        if let Some(neighbours) = &self.neighbours {
            writeln!(text, "Beside the suite: {neighbours}.")?;
        }
        let Self {
            passed,
            failed,
            skipped,
            seconds,
            ..
        } = self;
        let cut = if self.complete { "" } else { ", cut off" };
        writeln!(
            text,
            "{passed} checks passed, {failed} failed, {skipped} were skipped, in {seconds:.0} s{cut}."
        )
    }
}

/// A figure whose least, median and greatest value, or some of them, are known.
#[derive(Debug, Default)]
struct Line<'f> {
    values: [Option<f64>; 3],
    unit: &'f str,
}

/// The columns, and the endings of names for each.
const COLUMNS: [(&str, &[&str]); 3] = [
    ("least", &[", least", ", minimum", ", of the minima"]),
    ("median", &[", median"]),
    ("greatest", &[", greatest"]),
];
/// The column of figures that are the only ones of their name.
const MEDIAN: usize = 1;

fn column_of(name: &str) -> (&str, usize) {
    for (column, (_, endings)) in COLUMNS.iter().enumerate() {
        if let Some(stem) = endings.iter().find_map(|ending| name.strip_suffix(ending)) {
            return (stem, column);
        }
    }
    (name, MEDIAN)
}

impl SavedCheck {
    fn table(&self, text: &mut String) -> std::fmt::Result {
        let mut order = Vec::new();
        let mut lines: BTreeMap<&str, Line<'_>> = BTreeMap::new();
        for Figure { name, value, unit } in &self.figures {
            let (stem, column) = column_of(name);
            let line = lines.entry(stem).or_insert_with(|| {
                order.push(stem);
                Line::default()
            });
            line.values[column] = Some(*value);
            line.unit = unit;
        }
        writeln!(text, "\n{}: {}.", self.theme, self.name)?;
        if self.outcome == Outcome::Failed {
            writeln!(text, "**This check failed**: {}.", self.reasons.join("; "))?;
        }
        let [least, median, greatest] = COLUMNS.map(|(title, _)| title);
        writeln!(text, "\n| | {least} | {median} | {greatest} | |")?;
        writeln!(text, "|---|---:|---:|---:|---|")?;
        for stem in order {
            let line = &lines[stem];
            write!(text, "| {stem} |")?;
            for value in line.values {
                let shown = value.map_or_else(String::new, number);
                write!(text, " {shown} |")?;
            }
            writeln!(text, " {} |", line.unit)?;
        }
        Ok(())
    }
}

/// Formats a value with about three digits.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        above if above >= 100.0 => 0,
        above if above >= 10.0 => 1,
        above if above >= 1.0 => 2,
        _ => 3,
    };
    let shown = format!("{value:.digits$}");
    // Not `-0.000`.
    if shown.trim_start_matches(['-', '0', '.']).is_empty() {
        "0".to_owned()
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::{column_of, number};

    #[test]
    fn figures_of_one_name_share_a_line() {
        assert_eq!(column_of("error, least"), ("error", 0));
        assert_eq!(column_of("error, median"), ("error", 1));
        assert_eq!(column_of("error, greatest"), ("error", 2));
        assert_eq!(column_of("energy"), ("energy", 1));
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [1234.56, 12.345, 1.2345, 0.12345, -0.0001].map(number);
        assert_eq!(shown, ["1235", "12.3", "1.23", "0.123", "0"]);
    }
}
