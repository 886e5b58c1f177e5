//! What the other threads of this process do: their wakeups and their processor time, and the goals for both.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::options::Outcome;
use crate::report::{Cell, Table};

/// By how much a figure may be above its goal.
pub const TOLERANCE: f64 = 1.1;

/// What all threads but the first one have done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    wakeups: u64,
    nanoseconds: u64,
}

impl Usage {
    fn now() -> Outcome<Self> {
        let (own, mut sum) = (std::process::id().to_string(), Self::default());
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?;
            if task.file_name().to_str() == Some(&*own) {
                continue;
            }
            // A thread that has just ended has no files any more.
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let status = read("status");
            let mut lines = status.lines();
            let waits = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum.wakeups += waits.map_or(Ok(0), |number| number.trim().parse())?;
            let schedule = read("schedstat");
            let time = schedule.split_whitespace().next();
            sum.nanoseconds += time.map_or(Ok(0), str::parse)?;
        }
        Ok(sum)
    }
}

/// What the other threads did in some time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Activity {
    /// How often they began to wait, in a second: as often as they woke up.
    pub wakeups: f64,
    /// Their processor time, in microseconds in a second.
    pub microseconds: f64,
    /// Their processor time for each call, in nanoseconds; not a number if there were no calls.
    pub per_call: Option<f64>,
}

/// Measures the other threads while `run` runs, which returns how many calls it made.
///
/// # Errors
///
/// Returns an error if `/proc` does not show the threads.
pub fn during(run: impl FnOnce() -> u64) -> Outcome<Activity> {
    let (before, began) = (Usage::now()?, Instant::now());
    let calls = run();
    let (seconds, after) = (began.elapsed().as_secs_f64(), Usage::now()?);
    let nanoseconds = after.nanoseconds.saturating_sub(before.nanoseconds) as f64;
    Ok(Activity {
        wakeups: after.wakeups.saturating_sub(before.wakeups) as f64 / seconds,
        microseconds: nanoseconds / 1e3 / seconds,
        per_call: (calls > 0).then(|| nanoseconds / calls as f64),
    })
}

/// Does nothing for some time, and makes no calls.
pub fn idle(time: Duration) -> u64 {
    thread::sleep(time);
    0
}

/// Makes calls at a rate, all those of a millisecond at once. Returns how many.
pub fn paced(rate: u64, time: Duration, mut call: impl FnMut(u64)) -> u64 {
    let (began, burst) = (Instant::now(), rate / 1000);
    let (mut calls, mut due) = (0, Duration::ZERO);
    while due < time {
        (calls..calls + burst).for_each(&mut call);
        calls += burst;
        due += Duration::from_millis(1);
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
    calls
}

/// What the profiler's threads should do at most.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// Wakeups in a second.
    pub wakeups: f64,
    /// Nanoseconds of processor time for each call, if there are calls.
    pub per_call: Option<f64>,
}

/// A table of activities beside their goals.
#[derive(Debug)]
pub struct Goals {
    table: Table,
    missed: Vec<String>,
}

impl Goals {
    /// Creates a table without rows.
    pub fn new(title: &str) -> Self {
        let columns = "program | wakeups/s .1 | goal .0 | us/s .0 | ns/call .0 | goal .0";
        Self {
            table: Table::new(title, columns),
            missed: Vec::new(),
        }
    }

    /// Adds a row. One without a goal is there for comparison.
    pub fn add(&mut self, program: &str, activity: Activity, goal: Option<Goal>) {
        let of_calls = goal.and_then(|goal| goal.per_call);
        let wakeups = goal.map(|goal| goal.wakeups);
        self.table.push(vec![
            Cell::from(program),
            Cell::from(activity.wakeups),
            Cell::from(wakeups),
            Cell::from(activity.microseconds),
            Cell::from(activity.per_call),
            Cell::from(of_calls),
        ]);
        let is_above = |figure: Option<f64>, goal: Option<f64>| {
            figure
                .zip(goal)
                .is_some_and(|(figure, goal)| figure > TOLERANCE * goal)
        };
        if is_above(Some(activity.wakeups), wakeups) || is_above(activity.per_call, of_calls) {
            self.missed.push(program.to_owned());
        }
    }

    /// Returns the table, and an error that names the rows that miss their goals.
    pub fn end(self) -> (Table, Outcome<()>) {
        let outcome = if self.missed.is_empty() {
            Ok(())
        } else {
            let missed = self.missed.join(", ");
            Err(format!("more than a tenth above the goal: {missed}").into())
        };
        (self.table, outcome)
    }
}
