//! The `TensorBoard` logger: a writer of event files that fails softly.

mod event;
mod event_file;
mod histogram;
mod name;
mod record;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use self::event::Value;
use self::event_file::EventFile;
use self::histogram::Histogram;
use super::{LogError, Scalar, ScalarLogger};
use crate::diagnostics;
use crate::sync::Lock;

/// Writes scalars, histograms and texts to an event file that `TensorBoard` shows.
///
/// Scalars are kept as 32-bit floating point, the only kind of scalar that every version of
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
    /// None in a child that was forked while another thread wrote to it.
    file: Lock<Option<EventFile>>,
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
        let file = Lock::new(Some(EventFile::create(&dir)?));
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
        self.write(|file| {
            let mut outcome = Ok(());
            for (tag, value) in scalars {
                let taken = file.add(tag.as_ref(), Value::Scalar(*value), step, now);
                outcome = outcome.and(taken);
            }
            outcome
        })
    }

    /// Takes a histogram of some values, at the time of the call.
    ///
    /// The values are counted in buckets whose ends are a tenth apart, and not kept.
    ///
    /// # Errors
    ///
    /// [`LogError::Refused`] where there is no value, or one that is infinite or no number; else as
    /// [`add_scalar`](ScalarLogger::add_scalar).
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-histogram-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// let weights = [0.1_f32, -0.2, 0.05];
    /// logger.add_histogram("layer1/weights", weights.iter().copied().map(f64::from), 17)?;
    /// assert!(logger.add_histogram("layer1/gradients", [f64::NAN], 17).is_err());
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn add_histogram(
        &self,
        tag: &str,
        values: impl IntoIterator<Item = f64>,
        step: u64,
    ) -> Result<(), LogError> {
        self.add_histogram_at(tag, values, step, SystemTime::now())
    }

    pub(crate) fn add_histogram_at(
        &self,
        tag: &str,
        values: impl IntoIterator<Item = f64>,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        // Not under the lock: the values come from foreign code.
        let histogram = Histogram::of(values);
        self.write(|file| match &histogram {
            Ok(histogram) => file.add(tag, Value::Histogram(histogram), step, wall_time),
            Err(why) => Err(file.refuse(tag, why)),
        })
    }

    /// Takes a text in Markdown, at the time of the call.
    ///
    /// # Errors
    ///
    /// [`LogError::Refused`] for a text over 256 KiB; else as
    /// [`add_scalar`](ScalarLogger::add_scalar).
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-text-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// logger.add_text("settings", "| batch | rate |\n|---|---|\n| 64 | 0.01 |", 0)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn add_text(&self, tag: &str, text: &str, step: u64) -> Result<(), LogError> {
        self.add_text_at(tag, text, step, SystemTime::now())
    }

    pub(crate) fn add_text_at(
        &self,
        tag: &str,
        text: &str,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        self.write(|file| file.add(tag, Value::Text(text), step, wall_time))
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
            .unwrap_or_else(|| self.dir.clone())
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
        self.with_file(|file| file.lost()).unwrap_or(0)
    }

    /// Runs `f` on the file, then says what it left to be said; fails where a fork has left no file.
    fn write<T>(
        &self,
        f: impl FnOnce(&mut EventFile) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        self.with_file(f).unwrap_or_else(|| {
            Err(LogError::Closed(
                "another thread was writing to the log when this process was forked".to_owned(),
            ))
        })
    }

    /// Does the same with what cannot fail otherwise.
    fn with_file<T>(&self, f: impl FnOnce(&mut EventFile) -> T) -> Option<T> {
        let mut file = self.file.lock();
        let file_of_lock = file.as_mut()?;
        let result = f(file_of_lock);
        let notice = file_of_lock.take_notice();
        drop(file);
        if let Some(notice) = notice {
            diagnostics::warn_once(&notice);
        }
        Some(result)
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
        self.write(|file| file.add(tag, Value::Scalar(value), step, SystemTime::now()))
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        let value = Value::Scalar(scalar.value);
        self.write(|file| file.add(scalar.tag, value, scalar.step, scalar.wall_time))
    }

    fn unsaved(&self) -> u64 {
        self.with_file(|file| file.waiting()).unwrap_or(0)
    }

    /// Hands every value taken so far to the operating system.
    ///
    /// # Errors
    ///
    /// [`LogError::Io`] when the disk does not take them all; the rest waits for the next flush.
    fn flush(&self) -> Result<(), LogError> {
        self.write(EventFile::write_out)
    }
}

/// Seconds since 1970, negative before.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}
