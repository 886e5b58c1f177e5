//! The `TensorBoard` logger, which writes event files.

mod crc32c;
mod event;
mod event_file;
mod file_name;
mod histogram;
mod record_writer;
mod run_folder;
mod tf_record;

use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use profiler_host::diagnostics;
use profiler_host::sync::Lock;

use self::event_file::EventFile;
use self::histogram::BucketedValues;
use super::{IntoStep, LogError, Scalar, ScalarLogger};

/// Writes scalars, histograms and texts to an event file that `TensorBoard` shows.
///
/// Scalars are stored as 32-bit floating point, the only kind of scalar that every version of
/// `TensorBoard` shows. NaN and infinities are stored too. Values of one step that arrive within a
/// millisecond share an event, and the wall time of the first one.
///
/// All methods take `&self`: wrap the logger in an [`Arc`](std::sync::Arc) to share it between
/// threads, loggers and your own metrics. Have one logger: `TensorBoard` shows a folder as one run, and follows the newest
/// file in it. A run that names the folder of an earlier one gets a folder beside it.
///
/// # Tags
///
/// The tag of a measured call is the path of its name without the crate, joined by `/`, then the time that was measured
/// and its unit: `cuda_ms` if the name has GPU times, else `cpu_ms`. For example, `app::Trainer::forward` is logged as
/// `Trainer/forward/cuda_ms`, which `TensorBoard` shows in the group `Trainer`. Windows of a session are logged next to
/// it by `profiler_runtime::log::trace_handler`. Values that the program adds have the tags that it gives them.
///
/// # Durability
///
/// Values wait in memory, at most 64 KiB of them, until [`flush`](Self::flush) or drop
/// writes them. The profiler flushes its loggers at least once a second and at exit. Flushed values
/// survive the end of the process, even by `kill -9`. Except during a write, the file always ends
/// with a whole record.
///
/// A full or failing disk stops nothing. `flush` returns the error, and up to 1 MiB of values wait
/// until the disk takes them. Further values are refused with the error and counted in
/// [`lost`](Self::lost). If the file is deleted, a new one replaces it.
///
/// # Examples
///
/// ```
/// use profiler_log::TensorBoardLogger;
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
/// # Ok::<(), profiler_log::LogError>(())
/// ```
#[derive(Debug)]
pub struct TensorBoardLogger {
    dir: PathBuf,
    /// `None` in a child that was forked while another thread wrote to the file.
    file: Lock<Option<EventFile>>,
}

impl TensorBoardLogger {
    /// Creates a new event file in `dir`, and the folder if it does not exist. If the folder has event files of another process,
    /// as of an earlier run, the log goes to the first of `dir_2`, `dir_3` and so on that has none: `TensorBoard` then shows two
    /// runs. [`dir`](Self::dir) returns the folder.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Io`] if the folder or the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// let error = TensorBoardLogger::new("Cargo.toml/is/no/folder").unwrap_err();
    /// assert!(error.to_string().contains("cannot write the log in Cargo.toml/is/no/folder"));
    /// ```
    pub fn new(dir: impl AsRef<Path>) -> Result<Self, LogError> {
        let dir = run_folder::choose(dir.as_ref());
        let file = Lock::new(Some(EventFile::create(&dir)?));
        Ok(Self { dir, file })
    }

    /// Adds one value with the time of the call. The value is a number that fits into `f64`, the step any integer: a negative
    /// one counts as zero.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Refused`] for a step over [`i64::MAX`] or a tag over 16 KiB, and
    /// [`LogError::Io`] if 1 MiB of values waits because the disk takes none. The value then counts
    /// as [`lost`](Self::lost).
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-one-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// for (step, loss) in [0.5_f32, 0.25].iter().enumerate() {
    ///     logger.add_scalar("train/loss", *loss, step)?;
    /// }
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn add_scalar(
        &self,
        tag: impl AsRef<str>,
        value: impl Into<f64>,
        step: impl IntoStep,
    ) -> Result<(), LogError> {
        let (value, step) = (value.into(), step.into_step());
        self.write(|file| file.add_scalar(tag.as_ref(), value, step, SystemTime::now()))
    }

    /// Writes every value added so far to the file.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Io`] if the disk does not take all of them. The others wait for the next flush.
    pub fn flush(&self) -> Result<(), LogError> {
        self.write(EventFile::write_out)
    }

    /// Adds several values of one step with the time of the call: an array, a slice, a vector or a map of tags and values.
    /// They share an event.
    ///
    /// # Errors
    ///
    /// Returns the error of the first value that was refused. The other values are added all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-many-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// logger.add_scalars(&[("train/loss", 0.25), ("train/accuracy", 0.9)], 17)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn add_scalars<S: AsRef<str>>(
        &self,
        scalars: impl IntoIterator<Item: Borrow<(S, f64)>>,
        step: u64,
    ) -> Result<(), LogError> {
        // Without the lock: the iterator is user code, which may log.
        let scalars: Vec<_> = scalars.into_iter().collect();
        let now = SystemTime::now();
        self.write(|file| {
            let mut outcome = Ok(());
            for scalar in &scalars {
                let (tag, value) = scalar.borrow();
                let taken = file.add_scalar(tag.as_ref(), *value, step, now);
                outcome = outcome.and(taken);
            }
            outcome
        })
    }

    /// Adds a histogram of values with the time of the call.
    ///
    /// The values are counted in buckets, each a tenth wider than the one before, and not stored.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Refused`] if there are no values, or one is infinite or NaN. Returns the
    /// errors of [`add_scalar`](ScalarLogger::add_scalar) too.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-histogram-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// let weights = [0.1_f32, -0.2, 0.05];
    /// logger.add_histogram("layer1/weights", weights.iter().copied().map(f64::from), 17)?;
    /// assert!(logger.add_histogram("layer1/gradients", [f64::NAN], 17).is_err());
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn add_histogram(
        &self,
        tag: &str,
        values: impl IntoIterator<Item = f64>,
        step: u64,
    ) -> Result<(), LogError> {
        self.add_histogram_at(tag, values, step, SystemTime::now())
    }

    #[doc(hidden)]
    pub fn add_histogram_at(
        &self,
        tag: &str,
        values: impl IntoIterator<Item = f64>,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        // Without the lock: the iterator is user code, which may log.
        let histogram = BucketedValues::of(values);
        self.write(|file| match &histogram {
            Ok(histogram) => file.add_histogram(tag, histogram, step, wall_time),
            Err(why) => Err(file.refuse(tag, why)),
        })
    }

    /// Adds a text in Markdown with the time of the call.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Refused`] for a text over 256 KiB. Returns the errors of
    /// [`add_scalar`](ScalarLogger::add_scalar) too.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-text-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// logger.add_text("settings", "| batch | rate |\n|---|---|\n| 64 | 0.01 |", 0)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn add_text(&self, tag: &str, text: &str, step: u64) -> Result<(), LogError> {
        self.add_text_at(tag, text, step, SystemTime::now())
    }

    #[doc(hidden)]
    pub fn add_text_at(
        &self,
        tag: &str,
        text: &str,
        step: u64,
        wall_time: SystemTime,
    ) -> Result<(), LogError> {
        self.write(|file| file.add_text(tag, text, step, wall_time))
    }

    /// Returns the folder that was passed to [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-dir-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// println!("tensorboard --logdir {}", logger.dir().display());
    /// assert_eq!(logger.dir(), dir);
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the event file. It changes if the file is deleted and a new one replaces it.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::TensorBoardLogger;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-path-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// assert!(logger.path().starts_with(logger.dir()));
    /// assert!(logger.path().is_file());
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn path(&self) -> PathBuf {
        self.with_file(|file| file.path().to_owned())
            .unwrap_or_else(|| self.dir.clone())
    }

    /// Returns how many values were refused. The error of each was returned to its caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::{ScalarLogger, TensorBoardLogger};
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-lost-{}", std::process::id()));
    /// let logger = TensorBoardLogger::new(&dir)?;
    /// assert!(logger.add_scalar("train/loss", 0.5, u64::MAX).is_err());
    /// assert_eq!(logger.lost(), 1);
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn lost(&self) -> u64 {
        self.with_file(|file| file.lost()).unwrap_or(0)
    }

    /// Calls `f` with the file. Returns an error if a fork has left this process without it.
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

    /// Calls `f` with the file, then emits its warning. Returns `None` if a fork has left this process without the file.
    fn with_file<T>(&self, f: impl FnOnce(&mut EventFile) -> T) -> Option<T> {
        let mut file = self.file.lock();
        let event_file = file.as_mut()?;
        let result = f(event_file);
        let warning = event_file.take_warning();
        // The warning may reach user code that logs here.
        drop(file);
        if let Some(warning) = warning {
            diagnostics::warn_once(&warning);
        }
        Some(result)
    }
}

impl ScalarLogger for TensorBoardLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        Self::add_scalar(self, tag, value, step)
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        self.write(|file| file.add_scalar(scalar.tag, scalar.value, scalar.step, scalar.wall_time))
    }

    fn unsaved(&self) -> u64 {
        self.with_file(|file| file.values_waiting()).unwrap_or(0)
    }

    fn flush(&self) -> Result<(), LogError> {
        Self::flush(self)
    }
}

/// Returns the seconds since 1970, negative before.
fn seconds_since_epoch(time: SystemTime) -> f64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64(),
        Err(before) => -before.duration().as_secs_f64(),
    }
}
