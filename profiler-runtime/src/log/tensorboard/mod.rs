//! The `TensorBoard` logger: a writer of event files that fails softly.

mod event;
mod event_file;
mod name;
mod record;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use self::event_file::EventFile;
use super::{LogError, Scalar, ScalarLogger};
use crate::health;

/// Writes scalars to an event file that `TensorBoard` shows.
///
/// Values are kept as 32-bit floating point, the only kind of scalar that every version of
/// `TensorBoard` shows; NaN and infinities are kept too. Values of one step that arrive within a
/// millisecond share an event, and then the first one's wall time.
///
/// All methods take `&self`: wrap the logger in an [`Arc`](std::sync::Arc) to share it between
/// threads, loggers and your own metrics. Give each run a folder of its own, and one logger:
/// `TensorBoard` shows a folder as one run, and follows the newest file in it.
///
/// # What is on the disk when
///
/// Values wait in memory, at most 64 KiB of them, until [`flush`](ScalarLogger::flush) or drop
/// writes them; the profiler flushes its loggers at least once a second and at exit. What was
/// flushed survives the end of the process, also by `kill -9`. The file ends with a whole record at
/// all times, except within a write.
///
/// A disk that is full or fails stops nothing. `flush` returns the error, up to 1 MiB of values
/// wait for the disk to take them again, further ones are refused with the error and counted in
/// [`lost`](Self::lost). A file that someone deletes is replaced by a new one.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{ScalarLogger, TensorBoardLogger};
///
/// # let dir = std::env::temp_dir().join(format!("tensorboard-doc-{}", std::process::id()));
/// # /*
/// let dir = "runs/first";
/// # */
/// let logger = TensorBoardLogger::new(&dir)?;
/// for step in 0..100 {
///     let loss = 1.0 / (step + 1) as f64;
///     logger.add_scalar("train/loss", loss, step)?;
/// }
/// logger.flush()?;
/// assert_eq!(logger.lost(), 0);
/// // Then: tensorboard --logdir runs
/// # std::fs::remove_dir_all(dir).unwrap();
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
#[derive(Debug)]
pub struct TensorBoardLogger {
    dir: PathBuf,
    file: Mutex<EventFile>,
}

impl TensorBoardLogger {
    /// Makes a new event file in `dir`, and the folder where it is missing.
    ///
    /// # Errors
    ///
    /// [`LogError::Io`] when the folder or the file cannot be made, or takes no byte.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// let error = TensorBoardLogger::new("Cargo.toml/is/no/folder").unwrap_err();
    /// assert!(error.to_string().contains("cannot write the log in Cargo.toml/is/no/folder"));
    /// ```
    pub fn new(dir: impl AsRef<Path>) -> Result<Self, LogError> {
        let dir = dir.as_ref().to_owned();
        let file = Mutex::new(EventFile::create(&dir)?);
        Ok(Self { dir, file })
    }

    /// Takes several values of one step, all at the time of the call; they share an event.
    ///
    /// # Errors
    ///
    /// The first reason for which a value was refused; the others are taken all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-many-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// logger.add_scalars(&[("train/loss", 0.25), ("train/accuracy", 0.9)], 17)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn add_scalars(
        &self,
        scalars: &[(impl AsRef<str>, f64)],
        step: u64,
    ) -> Result<(), LogError> {
        let now = SystemTime::now();
        self.with_file(|file| {
            let mut outcome = Ok(());
            for (tag, value) in scalars {
                let taken = file.add(tag.as_ref(), *value, step, now);
                outcome = outcome.and(taken);
            }
            outcome
        })
    }

    /// The folder, as it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-dir-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// println!("tensorboard --logdir {}", logger.dir().display());
    /// assert_eq!(logger.dir(), dir);
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The event file that is written now; another one after somebody deleted the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-path-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// assert!(logger.path().starts_with(logger.dir()));
    /// assert!(logger.path().is_file());
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn path(&self) -> PathBuf {
        self.with_file(|file| file.path().to_owned())
    }

    /// How many values were refused: each one's caller was given the error.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{ScalarLogger, TensorBoardLogger};
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-lost-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// assert!(logger.add_scalar("train/loss", 0.5, u64::MAX).is_err());
    /// assert_eq!(logger.lost(), 1);
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn lost(&self) -> u64 {
        self.with_file(|file| file.lost())
    }

    /// Runs `f` on the file, then says what it left to be said.
    fn with_file<T>(&self, f: impl FnOnce(&mut EventFile) -> T) -> T {
        // No code under the lock leaves half a change behind when it panics, so poison is no news.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let result = f(&mut file);
        let notice = file.take_notice();
        drop(file);
        if let Some(notice) = notice {
            health::notice(&notice);
        }
        result
    }
}

impl ScalarLogger for TensorBoardLogger {
    /// Takes one value at the time of the call.
    ///
    /// # Errors
    ///
    /// [`LogError::Refused`] for a step over [`i64::MAX`] or a tag over 16 KiB; [`LogError::Io`]
    /// while the disk takes nothing and 1 MiB of values waits. The value counts as
    /// [`lost`](TensorBoardLogger::lost).
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        self.with_file(|file| file.add(tag, value, step, SystemTime::now()))
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        self.with_file(|file| file.add(scalar.tag, scalar.value, scalar.step, scalar.wall_time))
    }

    fn unsaved(&self) -> u64 {
        self.with_file(|file| file.waiting())
    }

    /// Hands every value taken so far to the operating system.
    ///
    /// # Errors
    ///
    /// [`LogError::Io`] when the disk does not take them all; the rest waits for the next flush.
    fn flush(&self) -> Result<(), LogError> {
        self.with_file(EventFile::write_out)
    }
}

/// Seconds since 1970, negative before.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}
