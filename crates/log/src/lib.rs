//! Loggers: they get the time of each call, under its tag and step.
//!
//! [`ScalarLogger`] is the trait. [`TensorBoardLogger`] writes event files, [`TracingLogger`] events of `tracing`; closures are
//! loggers too, see [`IntoLogger`]. `profiler-runtime` calls loggers and exports them as `profiler_runtime::log`; a program that
//! measures nothing can log with them too. With the feature `tensorboard-rs`, the writer of the crate of that name is a logger.
//!
//! # Examples
//!
//! ```
//! use profiler_log::TensorBoardLogger;
//!
//! # let dir = std::env::temp_dir().join(format!("profiler-log-{}", std::process::id()));
//! let board = TensorBoardLogger::new(&dir)?;
//! board.add_scalars(&[("loss/train", 0.7), ("loss/test", 0.8)], 1)?;
//! # drop(board);
//! # let _ = std::fs::remove_dir_all(dir);
//! # Ok::<(), profiler_log::LogError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
#[cfg(all(test, unix, not(miri)))]
#[path = "../../host/src/process/fork_and.rs"]
mod fork_and;
mod into_logger;
mod log_fn;
mod logger;
mod scalar;
mod step;
mod tensorboard;
#[cfg(feature = "tensorboard-rs")]
mod tensorboard_rs;
mod tracing_logger;

#[cfg(feature = "tensorboard-rs")]
pub use self::tensorboard_rs::TensorBoardRsLogger;
pub use error::LogError;
pub use into_logger::IntoLogger;
#[doc(hidden)]
pub use into_logger::{CalledOnAnotherThread, LoggerInPlace};
pub use log_fn::{LogFn, LogOutcome};
pub use logger::Logger;
pub use scalar::{CudaSpan, Scalar};
pub use step::IntoStep;
pub use tensorboard::TensorBoardLogger;
pub use tracing_logger::TracingLogger;

/// A destination for single measurements: a `TensorBoard` log, a channel, a metrics exporter.
///
/// Loggers are called on a thread of the profiler, never on the measured one, one call at a time.
/// (Only a scope with `sync = true` calls them on the measured thread.) A logger that
/// fails, panics or blocks does not affect the program: the lost entries are counted, and a warning
/// is shown once. While a logger blocks, the others wait: let it pass slow work to another thread.
///
/// Closures `|tag, milliseconds, step|` are accepted wherever a logger is; see [`IntoLogger`].
///
/// # Tags
///
/// Every logger gets the tags that `TensorBoardLogger` writes. They end with the time that
/// was measured and its unit, as in `Trainer/forward/cpu_ms` or `Trainer/forward/cuda_ms`: a closure has no other means
/// to tell GPU times from CPU times, and one that passes its arguments on to a viewer makes the same charts as
/// `TensorBoardLogger` does. [`Scalar::name`] is the name alone.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// use profiler_log::{LogError, ScalarLogger};
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
    /// Logs one value under a tag and a step. Measurements are in milliseconds, and their tags say so.
    ///
    /// # Errors
    ///
    /// Returns an error if the value was not accepted. The profiler counts it and warns once.
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError>;

    /// Logs one measurement. The profiler calls this method.
    ///
    /// The default implementation calls [`add_scalar`](Self::add_scalar). Override it if the
    /// destination stores wall times or GPU times.
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions of [`add_scalar`](Self::add_scalar).
    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        self.add_scalar(scalar.tag, scalar.value, scalar.step)
    }

    /// Returns how many accepted values are not saved yet.
    ///
    /// The profiler calls this after a flush that failed, to report how many values would be lost if
    /// the process ended. The default implementation returns zero.
    fn unsaved(&self) -> u64 {
        0
    }

    /// Saves everything accepted so far, so that it survives the end of the process.
    ///
    /// Called at least once a second while values arrive, on `profiler_runtime::flush`, and at exit.
    ///
    /// # Errors
    ///
    /// Returns an error if not all values were saved.
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

// Not `Arc<L>`: `&Arc<L>` would then have two conversions into a `Logger`, its own and that of a `&'static L`.
forward_to_pointee!(&L, Box<L>);
