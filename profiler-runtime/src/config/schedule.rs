//! When a session records: which steps belong to a window.

use std::fmt;

/// What a session does during a step; the names are those of `torch.profiler.ProfilerAction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing is recorded.
    #[default]
    None,
    /// Calls are recorded and thrown away, so that what a first recording costs is not in the window.
    Warmup,
    /// Calls belong to the window.
    Record,
    /// The same, and the window is handed over after this step.
    RecordAndSave,
}

impl Action {
    /// Whether calls belong to a window.
    #[must_use]
    pub const fn is_recording(self) -> bool {
        matches!(self, Self::Record | Self::RecordAndSave)
    }
}

/// Which steps a session records, in cycles: `wait` steps of nothing, `warmup` steps that are recorded and
/// thrown away, `active` steps that make one window. It follows `torch.profiler.schedule` step by step.
///
/// All numbers are counts of steps, from 0 on; `active` is at least 1 (0 is taken for 1, and warned of when the
/// session starts).
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Action, Schedule};
///
/// let schedule = Schedule::new().wait(1).warmup(1).active(2).repeat(1);
/// let actions: String = (0..6).map(|step| match schedule.action(step) {
///     Action::None => '.',
///     Action::Warmup => 'w',
///     Action::Record => 'R',
///     Action::RecordAndSave => 'S',
/// }).collect();
/// assert_eq!(actions, ".wRS..");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Schedule {
    /// Steps before the first cycle.
    pub skip_first: u64,
    /// Steps of each cycle in which nothing is recorded.
    pub wait: u64,
    /// Steps of each cycle that are recorded and thrown away.
    pub warmup: u64,
    /// Steps of each window.
    pub active: u64,
    /// How many cycles there are; 0 for no end.
    pub repeat: u64,
    /// Whether the first cycle does without its `wait` steps, `skip_first` having been enough.
    pub skip_first_wait: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// Every step is a window of its own, for ever.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            skip_first: 0,
            wait: 0,
            warmup: 0,
            active: 1,
            repeat: 0,
            skip_first_wait: false,
        }
    }

    /// Steps before the first cycle.
    #[must_use]
    pub const fn skip_first(self, skip_first: u64) -> Self {
        Self { skip_first, ..self }
    }

    /// Steps of each cycle in which nothing is recorded.
    #[must_use]
    pub const fn wait(self, wait: u64) -> Self {
        Self { wait, ..self }
    }

    /// Steps of each cycle that are recorded and thrown away.
    #[must_use]
    pub const fn warmup(self, warmup: u64) -> Self {
        Self { warmup, ..self }
    }

    /// Steps of each window, at least 1.
    #[must_use]
    pub const fn active(self, active: u64) -> Self {
        Self { active, ..self }
    }

    /// How many cycles there are; 0 for no end.
    #[must_use]
    pub const fn repeat(self, repeat: u64) -> Self {
        Self { repeat, ..self }
    }

    /// Whether the first cycle does without its `wait` steps.
    #[must_use]
    pub const fn skip_first_wait(self, skip_first_wait: bool) -> Self {
        Self {
            skip_first_wait,
            ..self
        }
    }

    /// What is done during a step; the first one has the number 0.
    #[must_use]
    pub const fn action(&self, step: u64) -> Action {
        let Some(mut step) = step.checked_sub(self.skip_first) else {
            return Action::None;
        };
        if self.skip_first_wait {
            step = step.saturating_add(self.wait);
        }
        let active = if self.active == 0 { 1 } else { self.active };
        let before = self.wait.saturating_add(self.warmup);
        let cycle = before.saturating_add(active);
        if self.repeat > 0 && step / cycle >= self.repeat {
            return Action::None;
        }
        let place = step % cycle;
        if place < self.wait {
            Action::None
        } else if place < before {
            Action::Warmup
        } else if place < cycle - 1 {
            Action::Record
        } else {
            Action::RecordAndSave
        }
    }

    /// Reads a schedule as the variable `PROFILER_SCHEDULE` spells it: `wait=1,warmup=1,active=3,repeat=2`.
    ///
    /// # Errors
    ///
    /// If a part is no `key=number`, a key is not known or given twice, or `active` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::Schedule;
    ///
    /// let schedule = Schedule::parse("wait=1, warmup=1, active=3")?;
    /// assert_eq!(schedule, Schedule::new().wait(1).warmup(1).active(3));
    /// # Ok::<(), profiler_runtime::ScheduleError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let mut schedule = Self::new();
        let mut seen: Vec<&str> = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
                .ok_or_else(|| ScheduleError::NoNumber { part: part.into() })?;
            if seen.contains(&key) {
                return Err(ScheduleError::Twice { key: key.into() });
            }
            seen.push(key);
            schedule.set(key, value, part)?;
        }
        if schedule.active == 0 {
            return Err(ScheduleError::NothingActive);
        }
        Ok(schedule)
    }

    fn set(&mut self, key: &str, value: &str, part: &str) -> Result<(), ScheduleError> {
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| ScheduleError::NoNumber { part: part.into() })
        };
        match key {
            "skip_first" => self.skip_first = number()?,
            "wait" => self.wait = number()?,
            "warmup" => self.warmup = number()?,
            "active" => self.active = number()?,
            "repeat" => self.repeat = number()?,
            "skip_first_wait" => {
                self.skip_first_wait = match value {
                    "1" | "true" => true,
                    "0" | "false" => false,
                    _ => return Err(ScheduleError::NoNumber { part: part.into() }),
                }
            }
            _ => return Err(ScheduleError::UnknownKey { key: key.into() }),
        }
        Ok(())
    }
}

impl fmt::Display for Schedule {
    /// As [`Schedule::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "skip_first={},wait={},warmup={},active={},repeat={}",
            self.skip_first, self.wait, self.warmup, self.active, self.repeat
        )?;
        if self.skip_first_wait {
            f.write_str(",skip_first_wait=1")?;
        }
        Ok(())
    }
}

/// Why a text is no [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A part is not a key and a number.
    #[error(
        "`{part}` is not `key=number`: write a schedule as `wait=1,warmup=1,active=3,repeat=2`"
    )]
    NoNumber {
        /// The part.
        part: String,
    },
    /// A key is not known.
    #[error(
        "a schedule has no `{key}`: it takes `skip_first`, `wait`, `warmup`, `active`, `repeat` and \
         `skip_first_wait`"
    )]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key is given twice.
    #[error("`{key}` is given twice: leave one of them out")]
    Twice {
        /// The key.
        key: String,
    },
    /// No step would ever be recorded.
    #[error("`active` is 0, so that nothing would be recorded: set it to 1 or more")]
    NothingActive,
}

/// What decides on the action of each step: a [`Schedule`], or a function of the step's number.
pub trait IntoSchedule {
    /// The function that is asked once for each step.
    fn into_schedule(self) -> ActionFn;
    /// What is wrong with it, in words, if anything is.
    fn objection(&self) -> Option<String> {
        None
    }
}

/// A function of the step's number. It is asked while the session is locked, and must not call it.
pub type ActionFn = Box<dyn Fn(u64) -> Action + Send>;

impl IntoSchedule for Schedule {
    fn into_schedule(self) -> ActionFn {
        Box::new(move |step| self.action(step))
    }

    fn objection(&self) -> Option<String> {
        if self.active == 0 {
            Some("the schedule's `active` is 0, and taken for 1: set it to 1 or more".into())
        } else if self.warmup == 0 && self.wait > 0 {
            Some(
                "the schedule has no warm-up: what a first recording costs is in its windows; set `warmup` to 1"
                    .into(),
            )
        } else {
            None
        }
    }
}

impl<F: Fn(u64) -> Action + Send + 'static> IntoSchedule for F {
    fn into_schedule(self) -> ActionFn {
        Box::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(schedule: Schedule, steps: u64) -> String {
        let letter = |step| match schedule.action(step) {
            Action::None => '.',
            Action::Warmup => 'w',
            Action::Record => 'R',
            Action::RecordAndSave => 'S',
        };
        (0..steps).map(letter).collect()
    }

    /// What `torch.profiler.schedule` gives for the same arguments.
    #[test]
    fn it_is_torchs_step_by_step() {
        let new = Schedule::new;
        let four = new().wait(4).warmup(1).active(2).repeat(2).skip_first(2);
        let rows = [
            (
                new().wait(1).warmup(1).active(2).repeat(1),
                ".wRS....................",
            ),
            (
                new().wait(1).warmup(1).active(3).repeat(2),
                ".wRRS.wRRS..............",
            ),
            (
                new().wait(2).warmup(1).active(3).repeat(2).skip_first(3),
                ".....wRRS..wRRS.........",
            ),
            (four, "......wRS....wRS........"),
            (four.skip_first_wait(true), "..wRS....wRS............"),
            (new().active(1), "SSSSSSSSSSSSSSSSSSSSSSSS"),
            (new().active(4).repeat(2), "RRRSRRRS................"),
            (
                new()
                    .wait(5)
                    .warmup(2)
                    .active(6)
                    .repeat(1)
                    .skip_first(10)
                    .skip_first_wait(true),
                "..........wwRRRRRS......",
            ),
        ];
        for (schedule, row) in rows {
            assert_eq!(drawn(schedule, 24), row, "{schedule}");
        }
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let schedule = Schedule::new()
            .wait(1)
            .warmup(2)
            .active(3)
            .repeat(4)
            .skip_first(5);
        for schedule in [schedule, schedule.skip_first_wait(true)] {
            assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule));
        }
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        let wrong = |text: &str| Schedule::parse(text).map_err(|error| error.to_string());
        for (text, word) in [
            ("wait", "`wait` is not `key=number`"),
            ("wait=x", "`wait=x` is not `key=number`"),
            ("wiat=1", "no `wiat`"),
            ("wait=1,wait=2", "`wait` is given twice"),
            ("active=0", "`active` is 0"),
        ] {
            let said = wrong(text).expect_err(text);
            assert!(said.contains(word), "{text}: {said}");
        }
    }

    #[test]
    fn the_largest_numbers_are_no_trap() {
        let schedule = Schedule::new()
            .wait(u64::MAX)
            .warmup(u64::MAX)
            .active(u64::MAX);
        let actions = [0, 1, u64::MAX].map(|step| schedule.action(step));
        assert_eq!(actions, [Action::None; 3], "it waits");
        let warmup = Schedule {
            wait: 0,
            ..schedule
        };
        assert_eq!(warmup.skip_first_wait(true).action(1), Action::Warmup);
    }
}
