//! One event file: values become events, events wait in memory, and whole records reach the disk.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::event::Value;
use super::{event, name, record, seconds_since_epoch};
use crate::diagnostics;
use crate::log::LogError;
use crate::process::fork;
use crate::process::output::Output;
use crate::process::signals;

/// Bytes that wait in memory before they are written.
const BATCH: usize = 64 * 1024;

/// Bytes that wait at most, while the disk takes none.
const MOST_WAITING: usize = 16 * BATCH;

/// Bytes of values that one event holds at most.
const LARGEST_EVENT: usize = 4 * 1024;

/// Bytes of a tag; a longer one would break the bounds above, and no viewer shows it.
const LONGEST_TAG: usize = 16 * 1024;

/// Bytes of a text, for the same reasons.
const LONGEST_TEXT: usize = 4 * BATCH;

/// Values of one step share an event where their wall times are no further apart than this.
const SAME_TIME_SECONDS: f64 = 0.001;

/// How long a disk that failed is left alone, unless the caller asks for a flush.
const PAUSE: Duration = Duration::from_secs(1);

/// An event file, and the values on their way into it.
#[derive(Debug)]
pub(super) struct EventFile {
    /// The [`generation`](fork::generation) of the process that writes it. A forked child has a copy of what waits, and
    /// the same place in the same file: it would write over what its parent writes.
    generation: u32,
    path: PathBuf,
    file: Output,
    /// Bytes of whole records in the file.
    length: u64,
    /// Whether the file may hold a piece of a record behind `length`.
    torn: bool,
    open: OpenEvent,
    /// Whole records that are not in the file yet, the oldest first.
    waiting: VecDeque<Batch>,
    failure: Option<Failure>,
    lost: u64,
    /// What is to be said once nobody waits for the file.
    notice: Option<String>,
    /// Where events are put together; kept for its memory.
    scratch: Vec<u8>,
}

/// The event that takes values now.
#[derive(Debug, Default)]
struct OpenEvent {
    wall_time: f64,
    step: i64,
    summary: Vec<u8>,
    values: u64,
}

/// Records that are written together.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<u8>,
    values: u64,
}

/// The last attempt to write, where it failed.
#[derive(Debug)]
struct Failure {
    at: Instant,
    error: io::Error,
}

impl EventFile {
    /// Makes a file in `dir` and writes its first record, so that a disk that takes nothing is
    /// known at once.
    pub(super) fn create(dir: &Path) -> Result<Self, LogError> {
        let (file, path) = name::create_file(dir).map_err(|error| LogError::io(dir, error))?;
        fork::watch();
        let mut this = Self {
            generation: fork::generation(),
            path,
            file,
            length: 0,
            torn: false,
            open: OpenEvent::default(),
            waiting: VecDeque::from([first_batch()]),
            failure: None,
            lost: 0,
            notice: None,
            scratch: Vec::new(),
        };
        this.write_waiting().map_err(|error| {
            this.waiting.clear();
            // The file is of no use; where it cannot be removed, it harms nobody.
            let _ = fs::remove_file(&this.path);
            LogError::io(&this.path, error)
        })?;
        Ok(this)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// What is to be said, once the file is not locked any more: whoever listens may log to it.
    pub(super) fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// How many values wait to be written.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.iter().map(|batch| batch.values).sum::<u64>() + self.open.values
    }

    /// Takes one value; where it cannot, the value counts as lost.
    pub(super) fn add(
        &mut self,
        tag: &str,
        value: Value<'_>,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        let taken = self.take(tag, value, step, seconds_since_epoch(wall_time));
        if taken.is_err() {
            self.lost += 1;
        }
        taken
    }

    /// Counts a value that cannot be one of the log.
    pub(super) fn refuse(&mut self, tag: &str, why: &dyn std::fmt::Display) -> LogError {
        self.lost += 1;
        LogError::Refused(format!("`{}`: {why}", beginning(tag)))
    }

    /// Brings every value taken so far into the file.
    pub(super) fn write_out(&mut self) -> Result<(), LogError> {
        self.refuse_in_child()?;
        self.close_event();
        match self.write_waiting() {
            Ok(()) => {
                self.failure = None;
                Ok(())
            }
            Err(error) => {
                let failure = Failure {
                    at: Instant::now(),
                    error,
                };
                let reported = failure.report(&self.path);
                self.failure = Some(failure);
                Err(reported)
            }
        }
    }

    fn take(
        &mut self,
        tag: &str,
        value: Value<'_>,
        step: u64,
        wall_time: f64,
    ) -> Result<(), LogError> {
        self.refuse_in_child()?;
        let step = i64::try_from(step).map_err(|_| step_too_large(step))?;
        if tag.len() > LONGEST_TAG {
            return Err(tag_too_long(tag));
        }
        if let Value::Text(text) = value
            && text.len() > LONGEST_TEXT
        {
            return Err(text_too_long(tag, text));
        }
        self.make_room()?;
        if !self.open.takes(step, wall_time) {
            self.close_event();
            self.open.step = step;
            self.open.wall_time = wall_time;
        }
        event::append_value(&mut self.open.summary, tag, value);
        self.open.values += 1;
        Ok(())
    }

    /// Writes what waits when it is time to; fails only when there is no room for another value.
    fn make_room(&mut self) -> Result<(), LogError> {
        let waiting = self.bytes_waiting();
        if waiting < BATCH {
            return Ok(());
        }
        let full = waiting >= MOST_WAITING;
        match &self.failure {
            Some(failure) if failure.at.elapsed() < PAUSE => {
                if full {
                    Err(failure.report(&self.path))
                } else {
                    Ok(())
                }
            }
            _ => self
                .write_out()
                .or_else(|error| if full { Err(error) } else { Ok(()) }),
        }
    }

    fn is_of_parent(&self) -> bool {
        self.generation != fork::generation()
    }

    fn refuse_in_child(&self) -> Result<(), LogError> {
        if self.is_of_parent() {
            return Err(LogError::Closed(format!(
                "{} belongs to the process that this one was forked from; open a log of its own",
                self.path.display()
            )));
        }
        Ok(())
    }

    fn bytes_waiting(&self) -> usize {
        let records: usize = self.waiting.iter().map(|batch| batch.records.len()).sum();
        records + self.open.summary.len()
    }

    /// Turns the open event, if it holds anything, into a record that waits.
    fn close_event(&mut self) {
        if self.open.values == 0 {
            return;
        }
        if self
            .waiting
            .back()
            .is_none_or(|last| last.records.len() >= BATCH)
        {
            self.waiting.push_back(Batch::default());
        }
        let Some(batch) = self.waiting.back_mut() else {
            return;
        };
        let OpenEvent {
            wall_time,
            step,
            summary,
            values,
        } = &mut self.open;
        self.scratch.clear();
        event::append_event(&mut self.scratch, *wall_time, *step, summary);
        record::append(&mut batch.records, &self.scratch);
        batch.values += *values;
        *values = 0;
        summary.clear();
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if !self.file.is_intact() {
            self.reopen()?;
        }
        if self.deleted() {
            let why = "was deleted while the program runs";
            self.start_over(why)?;
        }
        self.mend()?;
        while let Some(batch) = self.waiting.front_mut() {
            if let Err(error) = self.file.write_all(&batch.records) {
                self.torn = true;
                // Where this fails, the next attempt begins with it; readers stop at a torn record.
                let _ = self.mend();
                return Err(error);
            }
            self.length += batch.records.len() as u64;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Cuts off the piece of a record that a failed write left behind.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            let mut file = self.file.file()?;
            // Longer than it is, it may go over a limit.
            signals::protect_write(|| file.set_len(self.length))?;
            file.seek(SeekFrom::Start(self.length))?;
            self.torn = false;
        }
        Ok(())
    }

    /// Whether someone has removed the file, as people do who clear a folder of old runs.
    #[cfg(unix)]
    fn deleted(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let metadata = self.file.file().and_then(fs::File::metadata);
        metadata.is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Whether someone has removed the file; other systems do not let them.
    #[cfg(not(unix))]
    fn deleted(&self) -> bool {
        let _ = self;
        false
    }

    /// Goes on in the same file after the program has closed its descriptor, or in a new one where it is gone too.
    fn reopen(&mut self) -> io::Result<()> {
        const WHY: &str = "is gone, and the program has closed its descriptor";
        match self.file.reopen(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.start_over(WHY),
            Err(error) => Err(error),
            Ok(()) => {
                // The new descriptor stands at the beginning.
                self.torn = true;
                self.notice = Some(format!(
                    "the program has closed a descriptor that is not its own: that of the TensorBoard log {}, which was \
                     opened again",
                    self.path.display()
                ));
                Ok(())
            }
        }
    }

    /// Goes on in a new file of the same folder.
    fn start_over(&mut self, why: &str) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let (file, path) = name::create_file(dir)?;
        self.notice = Some(format!(
            "the TensorBoard log {} {why}; it goes on in {}",
            self.path.display(),
            path.display()
        ));
        self.file = file;
        self.path = path;
        self.length = 0;
        self.torn = false;
        self.waiting.push_front(first_batch());
        Ok(())
    }
}

/// The record that every file begins with.
fn first_batch() -> Batch {
    let mut data = Vec::new();
    event::append_file_version(&mut data, seconds_since_epoch(SystemTime::now()));
    let mut first = Batch::default();
    record::append(&mut first.records, &data);
    first
}

fn step_too_large(step: u64) -> LogError {
    LogError::Refused(format!(
        "step {step} does not fit an event file; give a `global_step` up to {}",
        i64::MAX
    ))
}

fn tag_too_long(tag: &str) -> LogError {
    LogError::Refused(format!(
        "the tag `{}` has {} bytes; give a `name` with at most {LONGEST_TAG}",
        beginning(tag),
        tag.len()
    ))
}

fn text_too_long(tag: &str, text: &str) -> LogError {
    LogError::Refused(format!(
        "the text `{}` has {} bytes; give it in parts of at most {LONGEST_TEXT}",
        beginning(tag),
        text.len()
    ))
}

/// As much of a tag as fits a message.
fn beginning(tag: &str) -> String {
    match tag.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &tag[..end]),
        None => tag.to_owned(),
    }
}

impl OpenEvent {
    fn takes(&self, step: i64, wall_time: f64) -> bool {
        self.values > 0
            && self.step == step
            && (self.wall_time - wall_time).abs() <= SAME_TIME_SECONDS
            && self.summary.len() < LARGEST_EVENT
    }
}

impl Failure {
    fn report(&self, path: &Path) -> LogError {
        // An `io::Error` cannot be cloned; the system's number says all of it.
        let copy = match self.error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.error.kind(), self.error.to_string()),
        };
        LogError::io(path, copy)
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        if self.is_of_parent() {
            return;
        }
        self.close_event();
        let values: u64 = self.waiting.iter().map(|batch| batch.values).sum();
        if values == 0 {
            return;
        }
        if self.file.is_intact() && self.deleted() {
            diagnostics::warn_once(&format!(
                "the TensorBoard log was deleted, and its last {values} values with it"
            ));
        } else if let Err(error) = self.write_waiting() {
            let values: u64 = self.waiting.iter().map(|batch| batch.values).sum();
            let error = LogError::io(&self.path, error);
            diagnostics::warn_once(&format!(
                "the last {values} values did not reach the TensorBoard log: {error}"
            ));
        }
    }
}
