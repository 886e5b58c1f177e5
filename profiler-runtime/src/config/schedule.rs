//! Schedules: which steps of a session belong to its windows.

use std::fmt;

use profiler_host::debug_with_message;

/// The action of a session during a step. The names are those of `torch.profiler.ProfilerAction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// Records nothing.
    #[default]
    None,
    /// Records calls and discards them, so that one-time costs of recording are not in the window.
    Warmup,
    /// Records calls for the window.
    Record,
    /// Records calls for the window, which ends and is delivered after this step.
    RecordAndSave,
}

impl Action {
    /// Returns `true` if calls are recorded for a window.
    #[must_use]
    pub const fn is_recording(self) -> bool {
        matches!(self, Self::Record | Self::RecordAndSave)
    }
}

/// A repeating pattern of steps: each cycle has `wait` steps without recording, `warmup` steps that are recorded and
/// discarded, and `active` steps that form one window. Follows `torch.profiler.schedule` step by step.
///
/// All fields are numbers of steps. `active` is at least 1: a session treats 0 as 1 and warns of it when it starts.
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
    /// Steps of each cycle without recording.
    pub wait: u64,
    /// Steps of each cycle that are recorded and discarded.
    pub warmup: u64,
    /// Steps of each window.
    pub active: u64,
    /// The number of cycles, or 0 for no limit.
    pub repeat: u64,
    /// `true` if the first cycle has no `wait` steps, since `skip_first` replaces them.
    pub skip_first_wait: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

impl Schedule {
    /// Creates a schedule in which every step is a window of its own, without an end.
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

    /// Sets the number of steps before the first cycle.
    #[must_use]
    pub const fn skip_first(self, skip_first: u64) -> Self {
        Self { skip_first, ..self }
    }

    /// Sets the number of steps of each cycle without recording.
    #[must_use]
    pub const fn wait(self, wait: u64) -> Self {
        Self { wait, ..self }
    }

    /// Sets the number of steps of each cycle that are recorded and discarded.
    #[must_use]
    pub const fn warmup(self, warmup: u64) -> Self {
        Self { warmup, ..self }
    }

    /// Sets the number of steps of each window, at least 1.
    #[must_use]
    pub const fn active(self, active: u64) -> Self {
        Self { active, ..self }
    }

    /// Sets the number of cycles. 0 means no limit.
    #[must_use]
    pub const fn repeat(self, repeat: u64) -> Self {
        Self { repeat, ..self }
    }

    /// Sets whether the first cycle has no `wait` steps, as those of `skip_first` are enough.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Action, Schedule};
    ///
    /// let schedule = Schedule::new().skip_first(2).wait(5).active(1);
    /// assert_eq!(schedule.action(2), Action::None);
    /// assert_eq!(schedule.skip_first_wait(true).action(2), Action::RecordAndSave);
    /// ```
    #[must_use]
    pub const fn skip_first_wait(self, skip_first_wait: bool) -> Self {
        Self {
            skip_first_wait,
            ..self
        }
    }

    /// Returns the action of a step. The first step has the number 0.
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
        let step_of_cycle = step % cycle;
        if step_of_cycle < self.wait {
            Action::None
        } else if step_of_cycle < before {
            Action::Warmup
        } else if step_of_cycle < cycle - 1 {
            Action::Record
        } else {
            Action::RecordAndSave
        }
    }

    /// Parses a schedule as the variable `PROFILER_SCHEDULE` spells it: `wait=1,warmup=1,active=3,repeat=2`.
    ///
    /// # Errors
    ///
    /// Returns an error if a part is not `key=number`, if a key is unknown or given twice, or if `active` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::Schedule;
    ///
    /// let schedule = Schedule::parse("wait=1, warmup=1, active=3")?;
    /// assert_eq!(schedule, Schedule::new().wait(1).warmup(1).active(3));
    /// # Ok::<(), profiler_runtime::session::ScheduleError>(())
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
    /// Formats the schedule as [`Schedule::parse`] reads it.
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

/// The error of [`Schedule::parse`].
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A part is not a key and a number.
    #[error(
        "`{part}` is not `key=number`, with a whole number from 0: write a schedule as \
         `wait=1,warmup=1,active=3,repeat=2`"
    )]
    NoNumber {
        /// The part.
        part: String,
    },
    /// A key is unknown.
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

debug_with_message!(ScheduleError: NoNumber, UnknownKey, Twice, NothingActive);

/// A type that decides on the action of each step: a [`Schedule`], or a function of the step's number.
pub trait IntoSchedule {
    /// Returns the function that is called once for each step.
    fn into_schedule(self) -> ActionFn;
    /// Returns a warning to show when the session starts, if the schedule has a flaw.
    fn objection(&self) -> Option<String> {
        None
    }
}

/// A function from the number of a step to its action. It is called with the session locked, and must not call the
/// session.
pub type ActionFn = Box<dyn Fn(u64) -> Action + Send>;

impl IntoSchedule for Schedule {
    fn into_schedule(self) -> ActionFn {
        Box::new(move |step| self.action(step))
    }

    fn objection(&self) -> Option<String> {
        if self.active == 0 {
            Some("the schedule's `active` is 0, which counts as 1: set it to 1 or more".into())
        } else if self.warmup == 0 && self.wait > 0 {
            Some(
                "the schedule has no warm-up: one-time costs of recording are in its windows; set `warmup` to 1"
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

    // The rows are what `torch.profiler.schedule` returns for the same arguments.
    #[test]
    fn a_schedule_follows_torch_step_by_step() {
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
    fn a_schedule_is_parsed_as_it_is_formatted() {
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
    fn an_error_names_the_wrong_part() {
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
    fn the_largest_numbers_do_not_overflow() {
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
