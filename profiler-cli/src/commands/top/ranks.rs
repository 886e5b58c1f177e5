//! The programs of a job: the one whose file was given, or all whose files are in a folder.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use profiler_report::internal::InOrder as _;

use super::super::folder::{self, Wanted};
use super::feed::{Feed, Health};
use super::file::File;
use super::line::{Line, Order, sort};
use super::pace::StepTime;
use super::strip::{Piece, Source};
use super::text::printable;
use crate::error::Error;
use crate::input::Limits;

/// How often a folder is searched for new files.
const SEARCH: Duration = Duration::from_secs(1);

/// A rank is slow if its steps take this many times as long as the median of the others, and differ from it by more than
/// their noise.
const SLOW: f64 = 1.1;

/// The files of a job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ranks: Vec<Rank>,
    /// The folder that is searched.
    pub(super) folder: Option<PathBuf>,
    searched: Instant,
    limits: Limits,
    /// The function whose calls are the steps, if the user named it.
    step: Option<String>,
}

/// A program of the job.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) file: File,
    pub(super) feed: Feed,
}

/// What the screen shows of a rank.
#[derive(Debug, PartialEq)]
pub(super) struct RankLine {
    /// The name of its file.
    pub(super) key: String,
    pub(super) rank: Option<u64>,
    pub(super) place: String,
    pub(super) health: Option<Health>,
    pub(super) steps_per_second: Option<f64>,
    pub(super) step: Option<StepTime>,
    /// By how much its steps are longer than the median of the others, if it is slow.
    pub(super) slow: Option<f64>,
    /// The part of the last span in which its first device was busy, and what says so.
    pub(super) busy: Option<(Source, f64)>,
    /// What its first device did in the last spans.
    pub(super) pieces: Vec<Piece>,
    /// The function that limits it, and its part of the last span; of the whole run if it kept a device waiting.
    pub(super) top: Option<(String, f64)>,
}

impl Job {
    pub(super) fn of_file(file: PathBuf, limits: Limits, step: Option<String>) -> Self {
        let mut job = Self {
            ranks: Vec::new(),
            folder: None,
            searched: Instant::now(),
            limits,
            step,
        };
        job.add(file);
        job
    }

    /// Finds the summaries in a folder.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read or has no summary.
    pub(super) fn of_folder(
        folder: PathBuf,
        limits: Limits,
        step: Option<String>,
    ) -> Result<Self, Error> {
        let files = folder::quietly(&folder, Wanted::Summaries)?;
        let mut job = Self {
            ranks: Vec::new(),
            folder: Some(folder),
            searched: Instant::now(),
            limits,
            step,
        };
        for file in files {
            job.add(file);
        }
        Ok(job)
    }

    fn add(&mut self, path: PathBuf) {
        self.ranks.push(Rank {
            file: File::new(path, self.limits),
            feed: Feed::new(self.step.clone()),
        });
    }

    /// Reads the files that have changed.
    pub(super) fn look(&mut self) {
        if let Some(folder) = &self.folder
            && self.searched.elapsed() > SEARCH
        {
            self.searched = Instant::now();
            // The files that were found remain if the folder is gone.
            let files = folder::quietly(folder, Wanted::Summaries).unwrap_or_default();
            for file in files {
                if self.ranks.iter().all(|rank| rank.file.path() != file) {
                    self.add(file);
                }
            }
        }
        for rank in &mut self.ranks {
            rank.feed.take(rank.file.look());
        }
    }

    /// Returns the rank that is opened, or else the first.
    pub(super) fn opened(&self, key: Option<&str>) -> Option<&Rank> {
        let opened = self.ranks.iter().find(|rank| Some(&*rank.key()) == key);
        opened.or_else(|| self.ranks.first())
    }

    /// Returns the lines of the screen, by rank; those that have ended come last. As long as one has not, those that have
    /// are not compared with it.
    pub(super) fn lines(&self, now: SystemTime) -> Vec<RankLine> {
        let mut lines: Vec<RankLine> = self.ranks.iter().map(|rank| rank.line(now)).collect();
        lines.order_by_key(|line| (line.has_ended(), line.rank.unwrap_or(u64::MAX)));
        let all_ended = lines.iter().all(RankLine::has_ended);
        let compared = |line: &RankLine| line.step.filter(|_| all_ended || !line.has_ended());
        let steps: Vec<Option<StepTime>> = lines.iter().map(compared).collect();
        for (line, slow) in lines.iter_mut().zip(slow(&steps)) {
            line.slow = slow;
        }
        lines
    }
}

impl Rank {
    pub(super) fn key(&self) -> String {
        let name = self.file.path().file_name().unwrap_or_default();
        printable(&name.to_string_lossy())
    }

    fn line(&self, now: SystemTime) -> RankLine {
        let Feed {
            shown, strip, pace, ..
        } = &self.feed;
        let environment = shown.as_ref().map(|shown| &shown.summary.environment);
        let busy = strip.tracks.first();
        let top = shown.as_ref().and_then(|shown| {
            let mut lines: Vec<&Line> = shown.lines.iter().collect();
            sort(&mut lines, shown.limit);
            let line = lines.first()?;
            let share = match shown.limit {
                Order::Cuda => line.cuda?,
                Order::Idle => line.idle?.1,
                _ => line.cpu,
            };
            Some((line.name.clone(), share))
        });
        RankLine {
            key: self.key(),
            rank: environment.and_then(|environment| environment.rank),
            place: environment.map_or_else(String::new, |environment| {
                printable(&format!("{}:{}", environment.host, environment.process))
            }),
            health: shown.as_ref().map(|shown| shown.health(now)),
            steps_per_second: pace.rate(),
            step: pace.step_time(),
            slow: None,
            busy: busy.and_then(|track| Some((track.source, track.latest?.busy))),
            pieces: busy.map_or_else(Vec::new, |track| track.columns.iter().copied().collect()),
            top,
        }
    }
}

impl RankLine {
    fn has_ended(&self) -> bool {
        self.health == Some(Health::Ended)
    }
}

/// Returns by how much of the median of the others the steps of each rank are longer, for those that are slow: by more than a
/// tenth, and by more than the noise of their own step time.
fn slow(steps: &[Option<StepTime>]) -> Vec<Option<f64>> {
    let of = |at: usize| {
        let own = steps[at]?;
        let others = steps.iter().enumerate().filter(|(other, _)| *other != at);
        let median = median(
            others
                .filter_map(|(_, step)| Some(step.as_ref()?.ns))
                .collect(),
        )?;
        let is_slow = own.ns > SLOW * median && own.ns - median > own.noise_ns?;
        is_slow.then(|| own.ns / median - 1.0)
    };
    (0..steps.len()).map(of).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.order_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use profiler_report::{Row, Summary};

    use super::super::file::Look;
    use super::*;

    fn step(ns: f64, noise_ns: impl Into<Option<f64>>) -> Option<StepTime> {
        let noise_ns = noise_ns.into();
        (ns > 0.0).then_some(StepTime { ns, noise_ns })
    }

    #[test]
    fn ranks_that_have_ended_come_last_and_are_compared_among_themselves() {
        let mut job = Job::of_file(PathBuf::from("0"), Limits::DEFAULT, None);
        for file in ["1", "2"] {
            job.add(PathBuf::from(file));
        }
        let take = |job: &mut Job, rank: usize, wall_s: u64, steps: u64, is_last: bool| {
            let mut summary = Summary {
                wall_ns: wall_s as f64 * 1e9,
                interval_ns: Some(1e9),
                is_last,
                ..Summary::default()
            };
            summary.environment.rank = Some(rank as u64);
            summary.rows = vec![Row {
                name: "step".to_owned(),
                calls: steps,
                ..Row::default()
            }];
            job.ranks[rank].feed.take(Look::New {
                summary: Box::new(summary),
                written: SystemTime::UNIX_EPOCH,
            });
        };
        // Rank 1 takes twice as long, and rank 0 ends first.
        for second in 1..=5 {
            take(&mut job, 0, second, 10 * second, second == 5);
            take(&mut job, 1, second, 5 * second, false);
            take(&mut job, 2, second, 10 * second, false);
        }
        let lines = |job: &Job| -> Vec<(Option<u64>, Option<f64>)> {
            let lines = job.lines(SystemTime::UNIX_EPOCH);
            lines.iter().map(|line| (line.rank, line.slow)).collect()
        };
        let slow = [(Some(1), Some(1.0)), (Some(2), None), (Some(0), None)];
        assert_eq!(lines(&job), slow);
        take(&mut job, 2, 6, 60, true);
        // It is the only one that is left.
        assert_eq!(lines(&job)[0], (Some(1), None));
        take(&mut job, 1, 6, 30, true);
        assert_eq!(lines(&job)[1], (Some(1), Some(1.0)));
    }

    #[test]
    fn a_rank_is_slow_by_a_tenth_of_the_others_median_and_by_its_own_noise() {
        let steps = [
            step(100.0, 1.0),
            step(104.0, 1.0),
            step(0.0, None),
            step(130.0, 20.0),
        ];
        let [none, also_none, absent, slow] = slow(&steps)[..] else {
            panic!("one for each");
        };
        assert_eq!((none, also_none, absent), (None, None, None));
        assert!((slow.expect("it is slow") - (130.0 / 102.0 - 1.0)).abs() < 1e-9);
        // Ten percent are no reason, and neither are thirty that are noise, or whose noise is not known.
        for (ns, noise_ns) in [(110.0, Some(1.0)), (130.0, Some(31.0)), (130.0, None)] {
            let steps = [step(ns, noise_ns), step(100.0, 1.0)];
            assert_eq!(super::slow(&steps), [None, None]);
        }
        assert_eq!(super::slow(&[step(100.0, 1.0)]), [None]);
    }
}
