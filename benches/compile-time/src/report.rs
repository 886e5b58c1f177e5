//! The table: medians, and the ratio of the annotated twin to the bare one.

use std::fmt;

use bench_harness::{Table, median};
use serde::Serialize;

use crate::build::{Mode, Took};

/// One mode.
#[derive(Serialize)]
pub(crate) struct Row {
    mode: Mode,
    bare: Seconds,
    annotated: Seconds,
    ratio_of_wall: f64,
    ratio_of_processor: Option<f64>,
}

/// Medians over the builds.
#[derive(Serialize)]
struct Seconds {
    wall: f64,
    processor: Option<f64>,
}

impl Seconds {
    fn of(builds: &[Took]) -> Self {
        let wall: Vec<f64> = builds.iter().map(|took| took.wall).collect();
        let processor: Option<Vec<f64>> = builds.iter().map(|took| took.processor).collect();
        Self {
            wall: median(&wall),
            processor: processor.map(|processor| median(&processor)),
        }
    }
}

impl Row {
    pub(crate) fn new(mode: Mode, bare: &[Took], annotated: &[Took]) -> Self {
        let (bare, annotated) = (Seconds::of(bare), Seconds::of(annotated));
        Self {
            mode,
            ratio_of_wall: annotated.wall / bare.wall,
            ratio_of_processor: annotated
                .processor
                .zip(bare.processor)
                .map(|(with, without)| with / without),
            bare,
            annotated,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.mode.name();
        write!(f, "{name}: {:.2} times as long", self.ratio_of_wall)
    }
}

/// The bound that the project promises: 1.15.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "1,000 functions",
        "bare s",
        "annotated s",
        "ratio",
        "bare cpu s",
        "annotated cpu s",
        "ratio",
        "bound",
    ]);
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.2}"));
    for row in rows {
        table.row([
            row.mode.name().to_owned(),
            seconds(Some(row.bare.wall)),
            seconds(Some(row.annotated.wall)),
            format!("{:.3}", row.ratio_of_wall),
            seconds(row.bare.processor),
            seconds(row.annotated.processor),
            row.ratio_of_processor
                .map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            "<= 1.15".to_owned(),
        ]);
    }
    table
}
