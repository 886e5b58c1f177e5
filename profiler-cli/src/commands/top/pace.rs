//! How fast a program does its steps.

use std::collections::VecDeque;

use profiler_report::internal::is_step;
use profiler_report::{Row, Summary};

/// The spans that the pace is of: the last ten between two writes of the file.
const SPANS: usize = 10;

/// The steps that ended in the last spans.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The function whose calls are the steps.
    name: Option<String>,
    spans: VecDeque<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    ns: f64,
    steps: f64,
}

/// The mean time of a step, waits between steps included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepTime {
    pub(super) ns: f64,
    /// Twice the standard error, from the differences between the spans; `None` if there are fewer than three.
    pub(super) noise_ns: Option<f64>,
}

impl Pace {
    /// Adds the steps since `before`, a summary of the same run. Without one, the history of the function tells what went
    /// before. `wanted` names the function.
    pub(super) fn take(&mut self, now: &Summary, before: Option<&Summary>, wanted: Option<&str>) {
        let Some(row) = step_row(now, wanted) else {
            *self = Self::default();
            return;
        };
        let earlier = before.and_then(|before| {
            let row = before
                .rows
                .iter()
                .find(|earlier| earlier.name == row.name)?;
            Some((before.wall_ns, row.calls))
        });
        match earlier {
            Some((wall_ns, calls)) if self.name.as_ref() == Some(&row.name) => {
                self.spans.push_back(Span {
                    ns: now.wall_ns - wall_ns,
                    steps: row.calls.saturating_sub(calls) as f64,
                });
            }
            _ => {
                self.name = Some(row.name.clone());
                self.spans = of_history(row);
            }
        }
        let surplus = self.spans.len().saturating_sub(SPANS);
        self.spans.drain(..surplus);
    }

    /// Returns the function whose calls are the steps; `None` if none is known to be.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the steps per second; `None` if there is no span yet.
    pub(super) fn rate(&self) -> Option<f64> {
        let (ns, steps) = self.sums();
        (ns > 0.0).then(|| steps * 1e9 / ns)
    }

    /// Returns the mean time of a step; `None` if none has ended in the last spans.
    pub(super) fn step_time(&self) -> Option<StepTime> {
        let (all_ns, steps) = self.sums();
        if steps <= 0.0 {
            return None;
        }
        let ns = all_ns / steps;
        // The standard error of a ratio of two sums.
        let squares = self
            .spans
            .iter()
            .map(|span| (span.ns - ns * span.steps).powi(2));
        let squares: f64 = squares.sum();
        let spans = self.spans.len() as f64;
        let error_ns = (squares * spans / (spans - 1.0)).sqrt() / steps;
        Some(StepTime {
            ns,
            noise_ns: (spans >= 3.0).then_some(2.0 * error_ns),
        })
    }

    /// Returns the length of the spans in nanoseconds, and the steps that ended in them.
    fn sums(&self) -> (f64, f64) {
        let spans = self.spans.iter();
        spans.fold((0.0, 0.0), |(ns, steps), span| {
            (ns + span.ns, steps + span.steps)
        })
    }
}

/// Returns the row whose calls are the steps: the one that the user named, or else of those whose last part has the word
/// `step` the one that took longest, so that `train_step` comes before the `Optimizer::step` inside of it.
fn step_row<'s>(summary: &'s Summary, wanted: Option<&str>) -> Option<&'s Row> {
    let total = |row: &&Row| row.cpu.map_or(0.0, |cpu| cpu.total_ns);
    let rows = summary.rows.iter();
    match wanted {
        Some(wanted) => rows.into_iter().find(|row| row.name == wanted),
        None => rows
            .filter(|row| row.calls > 0 && is_step(&row.name))
            .max_by(|one, other| total(one).total_cmp(&total(other))),
    }
}

/// Returns the last spans of a row's history. Spans in which no call ended are left out of it, and are a part of the next.
fn of_history(row: &Row) -> VecDeque<Span> {
    let mut end = row.history.first().map_or(0, |first| first.start_ns);
    let mut spans = VecDeque::new();
    for point in &row.history {
        let begin = std::mem::replace(&mut end, point.start_ns.saturating_add(point.duration_ns));
        spans.push_back(Span {
            ns: end.saturating_sub(begin) as f64,
            steps: point.calls as f64,
        });
    }
    spans
}

#[cfg(test)]
mod tests {
    use profiler_report::{HistoryPoint, Times};

    use super::*;

    fn summary(seconds: f64, rows: &[(&str, u64, f64)]) -> Summary {
        let row = |(name, calls, total_ns): &(&str, u64, f64)| Row {
            name: (*name).to_owned(),
            calls: *calls,
            cpu: Some(Times {
                total_ns: *total_ns,
                ..Times::default()
            }),
            ..Row::default()
        };
        Summary {
            wall_ns: seconds * 1e9,
            rows: rows.iter().map(row).collect(),
            ..Summary::default()
        }
    }

    /// Returns the pace after summaries that are a second apart, with these numbers of steps since the beginning.
    fn pace(steps: &[u64]) -> Pace {
        let mut pace = Pace::default();
        let mut before = None;
        for (second, steps) in (1..).zip(steps) {
            let now = summary(f64::from(second), &[("train_step", *steps, 1.0)]);
            pace.take(&now, before.as_ref(), None);
            before = Some(now);
        }
        pace
    }

    #[test]
    fn the_step_is_the_longest_function_of_that_word_or_the_named_one() {
        let rows = [
            ("main", 1, 9.0),
            ("train::train_step", 5, 5.0),
            ("Optimizer::step", 5, 1.0),
            ("timestep_embedding", 5, 8.0),
            ("steps::load", 5, 8.0),
            ("open_step", 0, 9.0),
        ];
        let summary = summary(1.0, &rows);
        let name = |wanted| step_row(&summary, wanted).map(|row| &*row.name);
        assert_eq!(name(None), Some("train::train_step"));
        assert_eq!(name(Some("main")), Some("main"));
        assert_eq!(name(Some("absent")), None);
    }

    #[test]
    fn the_pace_is_that_of_the_last_spans() {
        let pace = pace(&[100, 104, 108, 110, 110]);
        // Ten steps in four seconds.
        assert_eq!(pace.rate(), Some(2.5));
        let time = pace.step_time().expect("steps");
        assert_eq!(time.ns.to_bits(), 4e8_f64.to_bits());
        // The spans differ from 0.4 s a step by -0.6, -0.6, 0.2 and 1 s.
        let noise = 2.0 * (1.76_f64 * 4.0 / 3.0).sqrt() / 10.0 * 1e9;
        assert!((time.noise_ns.expect("four spans") - noise).abs() < 1.0);
    }

    #[test]
    fn what_is_not_known_is_missing() {
        assert_eq!((pace(&[5]).rate(), pace(&[5]).step_time()), (None, None));
        assert_eq!(
            (pace(&[5, 5]).rate(), pace(&[5, 5]).step_time()),
            (Some(0.0), None)
        );
        let time = pace(&[5, 6, 7]).step_time().expect("two steps");
        assert_eq!(time.noise_ns, None);
        let mut pace = pace(&[5, 6]);
        pace.take(&Summary::default(), None, None);
        assert_eq!((pace.name(), pace.rate()), (None, None));
    }

    #[test]
    fn only_the_last_spans_count() {
        let steps: Vec<u64> = (0..40)
            .map(|second| {
                if second < 20 {
                    9 * second
                } else {
                    180 + second
                }
            })
            .collect();
        assert_eq!(pace(&steps).rate(), Some(1.0));
    }

    #[test]
    fn the_first_summary_has_the_pace_of_its_history() {
        let mut now = summary(9.0, &[("step", 6, 1.0)]);
        let point =
            |start, duration, calls| HistoryPoint::from((start, duration, calls, 0.0, 0, 0.0));
        now.rows[0].history = vec![
            point(1_000_000_000, 1_000_000_000, 2),
            point(5_000_000_000, 1_000_000_000, 3),
        ];
        let mut pace = Pace::default();
        pace.take(&now, None, None);
        // Nothing ended from the second second to the fifth.
        assert_eq!((pace.rate(), pace.name()), (Some(1.0), Some("step")));
    }
}
