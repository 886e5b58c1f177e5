//! Where single measurements go: the [`ScalarLogger`] trait, and one file per destination.

mod error;
mod into_logger;
mod record;
#[cfg(feature = "tensorboard")]
mod tensorboard;
#[cfg(feature = "tensorboard-rs")]
mod tensorboard_rs;
mod to_tracing;

use std::sync::Arc;
use std::time::SystemTime;

use crate::stream_key::StreamId;

#[cfg(feature = "tensorboard-rs")]
pub use self::tensorboard_rs::TensorBoardRsLogger;
pub use error::LogError;
pub use into_logger::{IntoLogger, LogFn, LogOutcome, Logger};
pub(crate) use record::{LogRecord, LogRequest};
#[cfg(feature = "tensorboard")]
pub use tensorboard::TensorBoardLogger;
pub use to_tracing::TracingLogger;

/// One measurement on its way to a logger.
///
/// # Examples
///
/// ```
/// use std::time::SystemTime;
///
/// use profiler_runtime::Scalar;
///
/// let scalar = Scalar::new("model/forward", 1.25, 7, SystemTime::now());
/// assert_eq!(scalar.tag, "model/forward");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scalar<'a> {
    /// What the measurement is called; parts are separated by `/`, so that viewers group them.
    pub tag: &'a str,
    /// The duration in milliseconds: of the GPU where the name has GPU times, else of the CPU. Which of the
    /// two is fixed for each name.
    pub value: f64,
    /// The step: `global_step` where one was given, else the name's own call count from 0.
    pub step: u64,
    /// When the measured scope ended.
    pub wall_time: SystemTime,
    /// The name that was measured, as the summary shows it.
    pub name: &'a str,
    /// The duration on the CPU in milliseconds.
    pub cpu_ms: f64,
    /// The duration on the GPU, where there is one.
    pub cuda: Option<CudaSpan>,
}

/// What the work of a scope took on the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CudaSpan {
    /// How long, in milliseconds, between the two events; to half a microsecond.
    pub ms: f64,
    /// When it began, where that is known.
    pub start: Option<SystemTime>,
    /// How far off `start` may be, in nanoseconds. The length does not depend on it.
    pub uncertainty_ns: Option<f64>,
    /// The stream it was taken on.
    pub stream: StreamId,
}

impl CudaSpan {
    pub(crate) const fn new(
        ms: f64,
        start: Option<SystemTime>,
        uncertainty_ns: Option<f64>,
        stream: StreamId,
    ) -> Self {
        Self {
            ms,
            start,
            uncertainty_ns,
            stream,
        }
    }
}

impl<'a> Scalar<'a> {
    /// A measurement of `value` milliseconds on the CPU at `step`, named like its tag.
    #[must_use]
    pub fn new(tag: &'a str, value: f64, step: u64, wall_time: SystemTime) -> Self {
        Self {
            tag,
            value,
            step,
            wall_time,
            name: tag,
            cpu_ms: value,
            cuda: None,
        }
    }
}

/// A destination for single measurements: a `TensorBoard` log, a channel, a metrics exporter.
///
/// Loggers are called on a thread of the profiler, never on the measured one, one call at a time
/// for each name. (The argument `sync` alone calls them on the measured thread.) One that fails, panics or blocks is contained: it is counted, reported once, and
/// the measured program goes on.
///
/// Closures `|tag, milliseconds, step|` are accepted wherever a logger is; see [`IntoLogger`].
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// use profiler_runtime::{LogError, ScalarLogger};
///
/// #[derive(Default)]
/// struct Longest(Mutex<f64>);
///
/// impl ScalarLogger for Longest {
///     fn add_scalar(&self, _tag: &str, value: f64, _step: u64) -> Result<(), LogError> {
///         let mut longest = self.0.lock().map_err(LogError::other)?;
///         *longest = longest.max(value);
///         Ok(())
///     }
/// }
///
/// let longest = Longest::default();
/// longest.add_scalar("load", 2.5, 0)?;
/// assert_eq!(*longest.0.lock().unwrap(), 2.5);
/// # Ok::<(), LogError>(())
/// ```
pub trait ScalarLogger: Send + Sync {
    /// Takes one value, in milliseconds for measurements, under a tag and a step.
    ///
    /// # Errors
    ///
    /// Whatever kept the value from being taken; the profiler counts it and says so once.
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError>;

    /// Takes one measurement with the time it ended; the profiler calls this one.
    ///
    /// Override it where the destination can keep a wall time of its own. By default it calls
    /// [`add_scalar`](Self::add_scalar).
    ///
    /// # Errors
    ///
    /// As [`add_scalar`](Self::add_scalar).
    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        self.add_scalar(scalar.tag, scalar.value, scalar.step)
    }

    /// How many values were taken that no flush has yet brought to where they survive.
    ///
    /// Asked after a flush that failed, so that the report and the summary can say what would be lost
    /// if the process ended now. Zero by default.
    fn unsaved(&self) -> u64 {
        0
    }

    /// Brings everything taken so far to where it survives the end of the process.
    ///
    /// Called at least once a second while values arrive, on [`flush`](crate::flush), and at exit.
    ///
    /// # Errors
    ///
    /// Whatever kept the values from being brought there.
    fn flush(&self) -> Result<(), LogError> {
        Ok(())
    }
}

macro_rules! forward_to_pointee {
    ($($pointer:ty),+) => {$(
        impl<L: ScalarLogger + ?Sized> ScalarLogger for $pointer {
            fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
                (**self).add_scalar(tag, value, step)
            }

            fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
                (**self).add(scalar)
            }

            fn unsaved(&self) -> u64 {
                (**self).unsaved()
            }

            fn flush(&self) -> Result<(), LogError> {
                (**self).flush()
            }
        }
    )+};
}

forward_to_pointee!(&L, Box<L>, Arc<L>);
