//! The loggers that take the calls without a `log` of their own.

#[cfg(feature = "tensorboard")]
use std::sync::Arc;

use crate::config::Settings;
use crate::log::{LogError, Logger};
use crate::name::CircuitBreaker;
use crate::sync::Lock;
use crate::sync::ReentrancyGuard;

/// All of them in a form that can be shared, each with a breaker of its own.
static DEFAULTS: Lock<Vec<(Logger, &'static CircuitBreaker)>> = Lock::new(Vec::new());

pub(super) fn all() -> Vec<(Logger, &'static CircuitBreaker)> {
    let defaults = DEFAULTS.lock();
    defaults
        .iter()
        .filter_map(|(logger, breaker)| Some((logger.share()?, *breaker)))
        .collect()
}

fn add(logger: Logger) {
    let _busy = ReentrancyGuard::try_enter();
    // Default loggers stay for the rest of the process.
    let breaker: &'static CircuitBreaker = Box::leak(Box::default());
    let mut defaults = DEFAULTS.lock();
    defaults.push((logger.into_shared(), breaker));
}

/// Adds a logger that takes every call without one of its own, from now on.
pub(crate) fn add_default(logger: Logger) {
    add(logger);
    crate::switch::with_control(|control| {
        control.default_logger = true;
        control.new_generation();
    });
}

/// Makes the logger that the environment asks for; true if it asks for one.
#[cfg(feature = "tensorboard")]
pub(crate) fn set_default_from(settings: &Settings) -> bool {
    use crate::log::IntoLogger;

    let Some(dir) = &settings.tensorboard else {
        return false;
    };
    let log = ENVIRONMENT.get_or_init(|| Arc::new(LazyTensorBoard::new(dir.clone())));
    add(Arc::clone(log).into_logger());
    true
}

#[cfg(not(feature = "tensorboard"))]
pub(crate) fn set_default_from(_settings: &Settings) -> bool {
    false
}

/// Opens the log that the environment asks for, if it does, so that what is wrong is known now.
#[cfg(feature = "tensorboard")]
pub(crate) fn open_from_environment() -> Result<(), LogError> {
    ENVIRONMENT.get().map_or(Ok(()), |log| log.open().map(drop))
}

#[cfg(not(feature = "tensorboard"))]
#[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
pub(crate) fn open_from_environment() -> Result<(), LogError> {
    Ok(())
}

#[cfg(feature = "tensorboard")]
use lazy::{ENVIRONMENT, LazyTensorBoard};

#[cfg(feature = "tensorboard")]
mod lazy {
    use std::path::PathBuf;
    use std::sync::Arc;

    use crate::log::{LogError, Scalar, ScalarLogger, TensorBoardLogger};
    use crate::sync::{Lock, RaceCell};

    pub(super) static ENVIRONMENT: RaceCell<Arc<LazyTensorBoard>> = RaceCell::new();

    /// A log whose file is made with its first entry, on the thread that calls loggers: the measured
    /// thread that reads the environment does no I/O.
    pub(super) struct LazyTensorBoard {
        dir: PathBuf,
        log: RaceCell<Result<TensorBoardLogger, String>>,
        /// Held while the file is made: there is to be one.
        opening: Lock<()>,
    }

    impl LazyTensorBoard {
        pub(super) fn new(dir: PathBuf) -> Self {
            Self {
                dir,
                log: RaceCell::new(),
                opening: Lock::new(()),
            }
        }

        pub(super) fn open(&self) -> Result<&TensorBoardLogger, LogError> {
            let open = || TensorBoardLogger::new(&self.dir).map_err(|error| error.to_string());
            let log = if let Some(log) = self.log.get() {
                log
            } else {
                let _opening = self.opening.lock();
                self.log.get_or_init(open)
            };
            log.as_ref().map_err(LogError::other)
        }
    }

    impl ScalarLogger for LazyTensorBoard {
        fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
            self.open()?.add_scalar(tag, value, step)
        }

        fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
            self.open()?.add(scalar)
        }

        fn unsaved(&self) -> u64 {
            self.open().map_or(0, ScalarLogger::unsaved)
        }

        fn flush(&self) -> Result<(), LogError> {
            self.open()?.flush()
        }
    }
}
