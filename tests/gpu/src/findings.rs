//! The results of a check: figures, and violated expectations.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use crate::device::Gpu;
use crate::figures::{least, median, most};
use crate::trouble::Trouble;

/// One check: a sentence that must hold.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// The bound, and its reason.
    pub(crate) bound: &'static str,
    pub(crate) run: fn(&Gpu, &mut Findings) -> Result<(), Trouble>,
}

/// The checks of one theme.
#[derive(Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) name: &'static str,
    pub(crate) checks: &'static [Check],
}

/// A number with its unit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    /// NaN where there is none, which JSON has no number for.
    #[serde(deserialize_with = "number_or_nan")]
    pub(crate) value: f64,
    pub(crate) unit: Cow<'static, str>,
}

fn number_or_nan<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// The results that a running check collects. A child process writes them as JSON, for its parent to add.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Findings {
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
    pub(crate) failures: Vec<String>,
}

impl Findings {
    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure {
            name: name.into(),
            value,
            unit: Cow::Borrowed(unit),
        });
    }

    /// Adds the results of a part, each prefixed with the part's name.
    pub(crate) fn add(&mut self, part: &str, found: Self) {
        let named = |text: String| format!("{part}: {text}");
        let figures = found.figures.into_iter().map(|figure| Figure {
            name: named(figure.name),
            ..figure
        });
        self.figures.extend(figures);
        self.notes.extend(found.notes.into_iter().map(named));
        self.failures.extend(found.failures.into_iter().map(named));
    }

    /// Adds the results of another process, as if they had been found here.
    pub(crate) fn extend(&mut self, found: Self) {
        self.figures.extend(found.figures);
        self.notes.extend(found.notes);
        self.failures.extend(found.failures);
    }

    /// Adds the minimum, the median and the maximum of some nanoseconds, in microseconds.
    pub(crate) fn spread_us(&mut self, name: &str, ns: &[f64]) {
        self.figure(format!("{name}, least"), least(ns) / 1e3, "µs");
        self.figure(format!("{name}, median"), median(ns) / 1e3, "µs");
        self.figure(format!("{name}, greatest"), most(ns) / 1e3, "µs");
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Records an expectation.
    pub(crate) fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(otherwise());
        }
    }

    /// Records that a value must be within bounds. NaN is out of bounds.
    pub(crate) fn expect_between(&mut self, what: &str, value: f64, least: f64, most: f64) {
        self.expect((least..=most).contains(&value), || {
            format!("{what} is {value:.3}, not between {least:.3} and {most:.3}")
        });
    }

    /// Records that a value must not be below a bound. NaN is.
    pub(crate) fn expect_at_least(&mut self, what: &str, value: f64, least: f64) {
        self.expect(value >= least, || {
            format!("{what} is {value:.3}, below {least:.3}")
        });
    }

    pub(crate) fn expect_count(&mut self, what: &str, count: u64, expected: u64) {
        self.expect(count == expected, || {
            format!("{what}: {count}, not {expected}")
        });
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// A check that has ended.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ended {
    pub(crate) theme: &'static str,
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// The reasons for a failure or a skip.
    pub(crate) reasons: Vec<String>,
    pub(crate) bound: &'static str,
    pub(crate) figures: Vec<Figure>,
    pub(crate) notes: Vec<String>,
    pub(crate) seconds: f64,
}

impl Ended {
    pub(crate) fn new(
        (theme, check): (&'static str, &Check),
        findings: Findings,
        result: Result<(), Trouble>,
        seconds: f64,
    ) -> Self {
        let mut reasons = findings.failures;
        let outcome = match result {
            // Violations found before count, even if the machine then lacks something.
            Err(Trouble::Skip(reason)) if reasons.is_empty() => {
                reasons.push(reason);
                Outcome::Skipped
            }
            Err(trouble) => {
                reasons.push(trouble.to_string());
                Outcome::Failed
            }
            Ok(()) if reasons.is_empty() => Outcome::Passed,
            Ok(()) => Outcome::Failed,
        };
        Self {
            theme,
            name: check.name,
            outcome,
            reasons,
            bound: check.bound,
            figures: findings.figures,
            notes: findings.notes,
            seconds,
        }
    }

    pub(crate) fn skipped(theme: &'static str, check: &Check, reason: &str) -> Self {
        let skip = Err(Trouble::Skip(reason.to_owned()));
        Self::new((theme, check), Findings::default(), skip, 0.0)
    }

    pub(crate) fn failed(theme: &'static str, check: &Check, reason: String, seconds: f64) -> Self {
        let failed = Err(Trouble::Missing(reason));
        Self::new((theme, check), Findings::default(), failed, seconds)
    }

    /// Formats the check in a few lines.
    pub(crate) fn print(&self) {
        let word = match self.outcome {
            Outcome::Passed => "ok  ",
            Outcome::Failed => "FAIL",
            Outcome::Skipped => "skip",
        };
        println!(
            "{word} {}: {} ({:.1} s)",
            self.theme, self.name, self.seconds
        );
        for reason in &self.reasons {
            println!("       ! {reason}");
        }
        for Figure { name, value, unit } in &self.figures {
            println!("       {value:>12.3} {unit:<4} {name}");
        }
        for note in &self.notes {
            println!("       {note}");
        }
    }
}
