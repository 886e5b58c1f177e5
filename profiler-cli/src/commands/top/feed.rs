//! The latest summary, the one before, and how the file is doing.

use std::cell::OnceCell;
use std::time::{Duration, SystemTime};

use profiler_report::{CallEdges, Summary};

use super::file::Look;
use super::line::{Line, Order, is_earlier, lines};
use super::pace::Pace;
use super::strip::Strip;

/// A file that is older than this many intervals is stale, and ...
const STALE_INTERVALS: u32 = 5;
/// ... older than this: a busy machine may be late.
const STALE_AFTER: Duration = Duration::from_secs(3);

/// The state of the program, as far as its file shows it.
#[derive(Debug, Default)]
pub(super) struct Feed {
    pub(super) shown: Option<Shown>,
    pub(super) strip: Strip,
    pub(super) pace: Pace,
    /// Why the file cannot be read now.
    pub(super) problem: Option<Problem>,
    /// The function whose calls are the steps, if the user named it.
    step: Option<String>,
}

/// A reason why the file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Missing { beside: Option<String> },
    Broken(String),
}

/// The latest summary.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) summary: Box<Summary>,
    pub(super) lines: Vec<Line>,
    callers: OnceCell<Option<CallEdges>>,
    /// The value by which functions limit the program.
    pub(super) limit: Order,
    /// The span of the rates.
    pub(super) span_ns: f64,
    pub(super) written: SystemTime,
}

/// How the program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It rewrites its file.
    Running,
    /// The file should have been rewritten and was not: the program was killed, is stopped, cannot write, or writes so
    /// slowly that it pauses.
    Stale,
    /// The last summary was written.
    Ended,
    /// The file is not rewritten at all.
    WrittenOnce,
}

impl Feed {
    pub(super) fn new(step: Option<String>) -> Self {
        Self {
            step,
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self, look: Look) {
        match look {
            Look::Same => {}
            Look::Missing { beside } => self.problem = Some(Problem::Missing { beside }),
            Look::Broken(reason) => self.problem = Some(Problem::Broken(reason)),
            Look::New { summary, written } => {
                self.problem = None;
                let before = self.shown.as_ref().map(|shown| &*shown.summary);
                let before = before.filter(|before| is_earlier(before, &summary));
                let (lines, span_ns) = lines(&summary, before);
                self.strip.take(&summary, before, &lines);
                self.pace.take(&summary, before, self.step.as_deref());
                let has_cuda = lines.iter().any(|line| line.cuda.is_some());
                let limit = if has_cuda && self.strip.device_limits() {
                    Order::Cuda
                } else if lines.iter().any(|line| line.idle.is_some()) {
                    Order::Idle
                } else {
                    Order::Cpu
                };
                self.shown = Some(Shown {
                    callers: OnceCell::new(),
                    summary,
                    lines,
                    limit,
                    span_ns,
                    written,
                });
            }
        }
    }
}

impl Shown {
    /// Returns who called whom; `None` if that was not counted. It is made when a row shows it, and once, since the screen is
    /// drawn several times a second.
    pub(super) fn callers(&self) -> Option<&CallEdges> {
        let has_callers = self.summary.call_tree.is_some();
        let callers = || has_callers.then(|| self.summary.callers());
        self.callers.get_or_init(callers).as_ref()
    }

    /// Returns how long ago the file was written.
    pub(super) fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.written).unwrap_or_default()
    }

    pub(super) fn health(&self, now: SystemTime) -> Health {
        if self.summary.is_last {
            return Health::Ended;
        }
        let Some(interval) = self.interval() else {
            return Health::WrittenOnce;
        };
        if self.age(now) > STALE_AFTER.max(STALE_INTERVALS * interval) {
            Health::Stale
        } else {
            Health::Running
        }
    }

    /// Returns how often the file is rewritten.
    pub(super) fn interval(&self) -> Option<Duration> {
        let seconds = self.summary.interval_ns? / 1e9;
        // A file may hold any number.
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(86_400)))
            .map(|interval| interval.min(Duration::from_secs(86_400)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(wall_ns: f64, interval_ns: Option<f64>, is_last: bool) -> Look {
        let summary = Summary {
            wall_ns,
            interval_ns,
            is_last,
            ..Summary::default()
        };
        Look::New {
            summary: Box::new(summary),
            written: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_problem_keeps_the_summary_until_the_next_one() {
        let mut feed = Feed::default();
        feed.take(Look::Missing { beside: None });
        let missing = Problem::Missing { beside: None };
        assert!(feed.shown.is_none() && feed.problem == Some(missing));
        feed.take(new(1e9, Some(1e9), false));
        assert!(feed.shown.is_some() && feed.problem.is_none());
        feed.take(Look::Broken("is empty".to_owned()));
        feed.take(Look::Same);
        assert!(feed.shown.is_some() && feed.problem.is_some());
        feed.take(new(3e9, Some(1e9), false));
        let shown = feed.shown.expect("a summary");
        assert!(feed.problem.is_none());
        assert_eq!(shown.span_ns.to_bits(), 2e9_f64.to_bits());
    }

    #[test]
    fn functions_that_the_gpu_limits_are_sorted_by_their_gpu_times() {
        let limit = |cuda_ns| {
            let times = |self_ns| profiler_report::Times {
                self_ns,
                total_ns: self_ns,
                ..profiler_report::Times::default()
            };
            let row = profiler_report::Row {
                cuda: Some(times(cuda_ns)),
                launch_bound: Some(0.0),
                ..profiler_report::Row::default()
            };
            let summary = Summary {
                wall_ns: 1e9,
                rows: vec![row],
                ..Summary::default()
            };
            let mut feed = Feed::default();
            feed.take(Look::New {
                summary: Box::new(summary),
                written: SystemTime::UNIX_EPOCH,
            });
            feed.shown.map(|shown| shown.limit)
        };
        assert_eq!(limit(7e8), Some(Order::Cuda));
        assert_eq!(limit(5e8), Some(Order::Cpu));
    }

    #[test]
    fn a_file_is_stale_after_several_intervals() {
        let health = |interval_ns, is_last, seconds| {
            let mut feed = Feed::default();
            feed.take(new(1e9, interval_ns, is_last));
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            feed.shown.map(|shown| shown.health(now))
        };
        assert_eq!(health(Some(1e9), false, 5), Some(Health::Running));
        assert_eq!(health(Some(1e9), false, 6), Some(Health::Stale));
        assert_eq!(health(Some(1e8), false, 2), Some(Health::Running));
        assert_eq!(health(Some(1e9), true, 600), Some(Health::Ended));
        assert_eq!(health(None, false, 600), Some(Health::WrittenOnce));
        assert_eq!(health(Some(f64::MAX), false, 600), Some(Health::Running));
        assert_eq!(health(Some(-1.0), false, 600), Some(Health::Running));
    }
}
