//! Budgets: absolute limits of functions, from a file.

mod limit;
mod parse;

use std::collections::BTreeMap;
use std::path::Path;

use profiler_report::Row;

use crate::compare::median;
use crate::error::Error;
use crate::input::{Input, InputError};
use limit::Limit;

/// The limits of functions.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Vec<Limit>,
}

/// The result of checking a budget: lines for the user.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(crate) struct Excess {
    /// Figures above their limits.
    pub(crate) over: Vec<String>,
    /// Limits of figures that no run has.
    pub(crate) missing: Vec<String>,
}

impl Budget {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::input(path, InputError::Io(error)))?;
        Self::parse(&text).map_err(|error| Error::Usage(format!("{}, {error}", path.display())))
    }

    /// Compares the medians of the runs with the limits.
    pub(crate) fn check(&self, runs: &[Input]) -> Excess {
        let runs: Vec<BTreeMap<String, Row>> = runs.iter().map(rows).collect();
        let mut excess = Excess::default();
        for limit in &self.limits {
            let rows = runs.iter().filter_map(|run| run.get(&limit.name));
            let figures: Vec<f64> = rows.filter_map(|row| limit.figure.of(row)).collect();
            if figures.is_empty() {
                excess.missing.push(limit.missing(&runs));
            } else {
                excess.over.extend(limit.excess(median(&figures)));
            }
        }
        excess
    }
}

fn rows(input: &Input) -> BTreeMap<String, Row> {
    let rows = match input {
        Input::Summary(summary) => summary.rows.clone(),
        Input::Timeline(timeline) => timeline.key_averages().rows,
    };
    rows.into_iter()
        .map(|row| (row.name.clone(), row))
        .collect()
}
