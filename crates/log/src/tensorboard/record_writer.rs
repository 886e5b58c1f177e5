//! Writes whole records to an event file, and keeps them while the disk takes none.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use profiler_host::process::output::Output;
use profiler_host::process::signals;
use profiler_report::internal::Message;

use super::{event, file_name, seconds_since_epoch, tf_record};
use crate::LogError;

/// Bytes that are written together.
pub(super) const BATCH: usize = 64 * 1024;

/// How long no write is tried after one has failed, unless the caller flushes.
const PAUSE: Duration = Duration::from_secs(1);

/// An event file on disk, and the records that are not in it yet.
#[derive(Debug)]
pub(super) struct RecordWriter {
    path: PathBuf,
    file: Output,
    /// Bytes of whole records in the file.
    length: u64,
    /// `true` if the file may hold a part of a record after `length` bytes.
    is_torn: bool,
    /// Records that are not in the file, the oldest first.
    waiting: VecDeque<Batch>,
    failure: Option<Failure>,
    /// A warning for the caller to emit once the log's lock is released.
    warning: Option<String>,
}

/// Records that are written together.
#[derive(Debug, Default)]
struct Batch {
    records: Vec<u8>,
    values: u64,
}

/// The last attempt to write, if it failed.
#[derive(Debug)]
struct Failure {
    at: Instant,
    error: io::Error,
}

impl RecordWriter {
    /// Creates a file in `dir` and writes its first record, so that a full disk is known at once.
    pub(super) fn create(dir: &Path) -> Result<Self, LogError> {
        let (file, path) = file_name::create_file(dir).map_err(|error| LogError::io(dir, error))?;
        let mut this = Self {
            path,
            file,
            length: 0,
            is_torn: false,
            waiting: VecDeque::from([first_batch()]),
            failure: None,
            warning: None,
        };
        this.write_waiting().map_err(|error| {
            this.waiting.clear();
            // The file is of no use. If it cannot be removed either, an empty file stays.
            let _ = fs::remove_file(&this.path);
            LogError::io(&this.path, error)
        })?;
        Ok(this)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the pending warning. The caller emits it with the log unlocked: it may reach user code that logs.
    pub(super) fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Returns how many values wait.
    pub(super) fn values_waiting(&self) -> u64 {
        self.waiting.iter().map(|batch| batch.values).sum()
    }

    /// Returns how many bytes wait.
    pub(super) fn bytes_waiting(&self) -> usize {
        self.waiting.iter().map(|batch| batch.records.len()).sum()
    }

    /// Adds a record with `data`, which holds `values` values, to the waiting ones.
    pub(super) fn push(&mut self, data: &[u8], values: u64) {
        let is_full = |last: &Batch| last.records.len() >= BATCH;
        if self.waiting.back().is_none_or(is_full) {
            self.waiting.push_back(Batch::default());
        }
        if let Some(batch) = self.waiting.back_mut() {
            tf_record::append(&mut batch.records, data);
            batch.values += values;
        }
    }

    /// Returns the error of the last attempt to write if it is too early for another one.
    pub(super) fn recent_failure(&self) -> Option<LogError> {
        let failure = self.failure.as_ref()?;
        (failure.at.elapsed() < PAUSE).then(|| failure.to_error(&self.path))
    }

    /// Writes everything that waits.
    pub(super) fn write_out(&mut self) -> Result<(), LogError> {
        self.failure = self.write_waiting().err().map(|error| Failure {
            at: Instant::now(),
            error,
        });
        match &self.failure {
            Some(failure) => Err(failure.to_error(&self.path)),
            None => Ok(()),
        }
    }

    /// Writes everything that waits for the last time. Returns a warning if values are lost.
    pub(super) fn close(&mut self) -> Option<String> {
        let values = self.values_waiting();
        if values == 0 {
            return None;
        }
        if self.file.is_intact() && self.file.is_removed() {
            return Some(format!(
                "the TensorBoard log was deleted, and its last {values} values with it"
            ));
        }
        let error = self.write_waiting().err()?;
        let (values, error) = (self.values_waiting(), LogError::io(&self.path, error));
        Some(format!(
            "the last {values} values did not reach the TensorBoard log: {error}"
        ))
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if !self.file.is_intact() {
            self.reopen()?;
        }
        if self.file.is_removed() {
            self.start_new_file("was deleted while the program runs")?;
        }
        self.cut_torn_record()?;
        while let Some(batch) = self.waiting.front_mut() {
            if let Err(error) = self.file.write_all(&batch.records) {
                self.is_torn = true;
                // If this fails, the next attempt begins with it. Until then readers stop before the torn record.
                let _ = self.cut_torn_record();
                return Err(error);
            }
            self.length += batch.records.len() as u64;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Cuts off the part of a record that a failed write has left behind.
    fn cut_torn_record(&mut self) -> io::Result<()> {
        if self.is_torn {
            let mut file = self.file.file()?;
            // `set_len` may extend a file that is shorter than expected, and a file size limit raises a signal then.
            signals::protect_write(|| file.set_len(self.length))?;
            file.seek(SeekFrom::Start(self.length))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Opens the file again after the program has closed its descriptor. Starts a new file if it is gone as well.
    fn reopen(&mut self) -> io::Result<()> {
        const WHY: &str = "is gone, and the program has closed its descriptor";
        match self.file.reopen(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.start_new_file(WHY),
            Err(error) => Err(error),
            Ok(()) => {
                // Makes the next write seek to the end: the new descriptor is at the beginning.
                self.is_torn = true;
                self.warning = Some(format!(
                    "the program has closed a descriptor that is not its own: that of the TensorBoard log {}, which was \
                     opened again",
                    self.path.display()
                ));
                Ok(())
            }
        }
    }

    /// Continues in a new file of the same folder.
    fn start_new_file(&mut self, why: &str) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let (file, path) = file_name::create_file(dir)?;
        self.warning = Some(format!(
            "the TensorBoard log {} {why}; it continues in {}",
            self.path.display(),
            path.display()
        ));
        self.file = file;
        self.path = path;
        self.length = 0;
        self.is_torn = false;
        self.waiting.push_front(first_batch());
        Ok(())
    }
}

/// Returns the record that every file begins with.
fn first_batch() -> Batch {
    let mut data = Message::default();
    event::append_file_version(&mut data, seconds_since_epoch(SystemTime::now()));
    let mut first = Batch::default();
    tf_record::append(&mut first.records, data.bytes());
    first
}

impl Failure {
    fn to_error(&self, path: &Path) -> LogError {
        // `io::Error` is not `Clone`; the system's error number holds all there is.
        let copy = match self.error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.error.kind(), self.error.to_string()),
        };
        LogError::io(path, copy)
    }
}
