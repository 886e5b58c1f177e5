//! Collects values into events, and events into the records of one event file.

use std::fmt::Display;
use std::path::Path;
use std::time::SystemTime;

use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_report::internal::Message;

use super::histogram::BucketedValues;
use super::record_writer::{BATCH, RecordWriter};
use super::{event, seconds_since_epoch};
use crate::LogError;

/// How many bytes wait at most while the disk takes none.
const MAX_WAITING: usize = 16 * BATCH;

/// How many bytes of values one event holds at most.
const MAX_EVENT: usize = 4 * 1024;

/// How many bytes a tag has at most. A longer one would exceed the bounds above, and no viewer shows it.
const MAX_TAG: usize = 16 * 1024;

/// How many bytes a text has at most, for the same reasons.
const MAX_TEXT: usize = 4 * BATCH;

/// Values of one step share an event if their wall times differ by no more than this.
const MAX_SECONDS_APART: f64 = 0.001;

/// An event file, and the values that are not in it yet.
#[derive(Debug)]
pub(super) struct EventFile {
    /// The [`generation`](fork::generation) of the process that writes the file. A forked child has a copy of the
    /// waiting values and shares the file's position: it would overwrite its parent's records.
    generation: u32,
    writer: RecordWriter,
    open: OpenEvent,
    /// How many values were refused.
    lost: u64,
    /// A buffer for encoding events, kept for its memory.
    scratch: Message,
}

/// The event that values are added to.
#[derive(Debug, Default)]
struct OpenEvent {
    wall_time: f64,
    step: i64,
    summary: Message,
    values: u64,
}

impl EventFile {
    /// Creates a file in `dir`.
    pub(super) fn create(dir: &Path) -> Result<Self, LogError> {
        fork::watch();
        Ok(Self {
            generation: fork::generation(),
            writer: RecordWriter::create(dir)?,
            open: OpenEvent::default(),
            lost: 0,
            scratch: Message::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.writer.path()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the pending warning. The caller emits it with the log unlocked: it may reach user code that logs.
    pub(super) fn take_warning(&mut self) -> Option<String> {
        self.writer.take_warning()
    }

    /// Returns how many values are not written yet.
    pub(super) fn values_waiting(&self) -> u64 {
        self.writer.values_waiting() + self.open.values
    }

    pub(super) fn add_scalar(
        &mut self,
        tag: &str,
        value: f64,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        self.add(tag, step, wall_time, |summary| {
            event::append_scalar(summary, tag, value);
        })
    }

    pub(super) fn add_histogram(
        &mut self,
        tag: &str,
        histogram: &BucketedValues,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        self.add(tag, step, wall_time, |summary| {
            event::append_histogram(summary, tag, histogram);
        })
    }

    pub(super) fn add_text(
        &mut self,
        tag: &str,
        text: &str,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        if text.len() > MAX_TEXT {
            self.lost += 1;
            return Err(text_too_long(tag, text));
        }
        self.add(tag, step, wall_time, |summary| {
            event::append_text(summary, tag, text);
        })
    }

    /// Counts a value as lost that cannot be logged, and returns the error.
    pub(super) fn refuse(&mut self, tag: &str, why: &dyn Display) -> LogError {
        self.lost += 1;
        LogError::Refused(format!("`{}`: {why}", beginning(tag)))
    }

    /// Writes everything that was added to the file.
    pub(super) fn write_out(&mut self) -> Result<(), LogError> {
        self.refuse_in_child()?;
        self.close_event();
        self.writer.write_out()
    }

    /// Adds one value, which `encode` appends to the summary of an event. A value that is refused counts as lost.
    fn add(
        &mut self,
        tag: &str,
        step: u64,
        wall_time: SystemTime,
        encode: impl FnOnce(&mut Message),
    ) -> Result<(), LogError> {
        let prepared = self.prepare(tag, step, seconds_since_epoch(wall_time));
        match prepared {
            Ok(()) => {
                encode(&mut self.open.summary);
                self.open.values += 1;
            }
            Err(_) => self.lost += 1,
        }
        prepared
    }

    /// Checks that a value can be added, and makes sure that the open event is one for it.
    fn prepare(&mut self, tag: &str, step: u64, wall_time: f64) -> Result<(), LogError> {
        self.refuse_in_child()?;
        let step = i64::try_from(step).map_err(|_| step_too_large(step))?;
        if tag.len() > MAX_TAG {
            return Err(tag_too_long(tag));
        }
        self.make_space()?;
        if !self.open.takes(step, wall_time) {
            self.close_event();
            self.open.step = step;
            self.open.wall_time = wall_time;
        }
        Ok(())
    }

    /// Writes if enough waits. Returns an error only if there is no space for another value.
    fn make_space(&mut self) -> Result<(), LogError> {
        let waiting = self.writer.bytes_waiting() + self.open.summary.bytes().len();
        if waiting < BATCH {
            return Ok(());
        }
        let written = match self.writer.recent_failure() {
            Some(error) => Err(error),
            None => self.write_out(),
        };
        if waiting < MAX_WAITING {
            return Ok(());
        }
        written
    }

    fn is_of_parent(&self) -> bool {
        self.generation != fork::generation()
    }

    fn refuse_in_child(&self) -> Result<(), LogError> {
        if self.is_of_parent() {
            return Err(LogError::Closed(format!(
                "{} belongs to the process that this one was forked from; open a log of its own",
                self.path().display()
            )));
        }
        Ok(())
    }

    /// Makes a record of the open event, if it holds any value.
    fn close_event(&mut self) {
        let OpenEvent {
            wall_time,
            step,
            summary,
            values,
        } = &mut self.open;
        if *values == 0 {
            return;
        }
        self.scratch.clear();
        event::append_event(&mut self.scratch, *wall_time, *step, summary);
        self.writer.push(self.scratch.bytes(), *values);
        *values = 0;
        summary.clear();
    }
}

impl OpenEvent {
    /// Returns `true` if a value of this step and wall time belongs in the event.
    fn takes(&self, step: i64, wall_time: f64) -> bool {
        self.values > 0
            && self.step == step
            && (self.wall_time - wall_time).abs() <= MAX_SECONDS_APART
            && self.summary.bytes().len() < MAX_EVENT
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        if self.is_of_parent() {
            return;
        }
        self.close_event();
        if let Some(warning) = self.writer.close() {
            diagnostics::warn_once(&warning);
        }
    }
}

fn step_too_large(step: u64) -> LogError {
    LogError::Refused(format!(
        "step {step} does not fit an event file; give a `global_step` up to {}",
        i64::MAX
    ))
}

fn tag_too_long(tag: &str) -> LogError {
    LogError::Refused(format!(
        "the tag `{}` has {} bytes; give a `name` with at most {MAX_TAG}",
        beginning(tag),
        tag.len()
    ))
}

fn text_too_long(tag: &str, text: &str) -> LogError {
    LogError::Refused(format!(
        "the text `{}` has {} bytes; give it in parts of at most {MAX_TEXT}",
        beginning(tag),
        text.len()
    ))
}

/// Returns the first characters of a tag, for a message.
fn beginning(tag: &str) -> String {
    match tag.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &tag[..end]),
        None => tag.to_owned(),
    }
}

#[cfg(all(test, not(miri)))]
mod tests;
