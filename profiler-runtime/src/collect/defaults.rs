//! The loggers that take the entries of calls without a logger of their own.

use std::path::PathBuf;
use std::sync::Arc;

use profiler_host::sync::Lock;
use profiler_host::sync::ReentrancyGuard;
use profiler_log::{LogError, Logger};

use super::entry::Recipient;
use crate::config::Settings;
use crate::name::Name;

static DEFAULTS: Defaults = Defaults(Lock::new(Vec::new()));

/// Loggers in a form that can be shared, each with a circuit breaker for all names.
struct Defaults(Lock<Vec<Recipient>>);

impl Defaults {
    fn add(&self, logger: Logger) {
        let _guard = ReentrancyGuard::try_enter();
        let recipient = Recipient {
            logger: logger.into_shared(),
            // Never freed: default loggers stay until the end of the process.
            breaker: Box::leak(Box::default()),
        };
        self.0.lock().push(recipient);
    }

    fn all(&self) -> Vec<Recipient> {
        self.0.lock().iter().filter_map(Recipient::share).collect()
    }
}

/// Returns the loggers that take the entries of calls without one.
pub(super) fn all() -> Vec<Recipient> {
    DEFAULTS.all()
}

/// Calls `send` for each logger that takes an entry of `name`: the call's own logger, else the default loggers.
pub(super) fn fan_out(
    name: &'static Name,
    logger: Option<Logger>,
    mut send: impl FnMut(Recipient),
) {
    let breaker = &name.breaker;
    match logger {
        Some(logger) => send(Recipient { logger, breaker }),
        None => all().into_iter().for_each(send),
    }
}

/// Adds a default logger, which takes entries from now on.
pub(crate) fn add_default(logger: Logger) {
    DEFAULTS.add(logger);
    crate::switch::with_control(|control| {
        control.default_logger = true;
        control.new_generation();
    });
}

/// Adds the logger that the environment asks for. Returns `true` if it asks for one.
pub(crate) fn set_default_from(settings: &Settings) -> bool {
    use profiler_log::IntoLogger;

    let Some(dir) = &settings.tensorboard else {
        return false;
    };
    let log = ENVIRONMENT.get_or_init(|| Arc::new(LazyTensorBoard::new(dir.clone())));
    DEFAULTS.add(Arc::clone(log).into_logger());
    true
}

/// Returns a TensorBoard log whose file is created for its first entry.
pub(crate) fn tensorboard_on_demand(dir: PathBuf) -> Logger {
    use profiler_log::IntoLogger;

    Arc::new(LazyTensorBoard::new(dir)).into_logger()
}

/// Returns the log that the settings ask for, if any.
pub(super) fn of_the_settings() -> Option<Arc<dyn profiler_log::ScalarLogger>> {
    let log: Arc<LazyTensorBoard> = Arc::clone(ENVIRONMENT.get()?);
    Some(log)
}

/// Returns the folder of the log that the environment asks for, if it was opened.
pub(crate) fn folder_of_environment() -> Option<PathBuf> {
    ENVIRONMENT.get()?.folder()
}

/// Opens the log that the environment asks for, if any, so that `init` returns the error.
pub(crate) fn open_from_environment() -> Result<(), LogError> {
    ENVIRONMENT.get().map_or(Ok(()), |log| log.open().map(drop))
}

use lazy::{ENVIRONMENT, LazyTensorBoard};

mod lazy {
    use std::path::PathBuf;
    use std::sync::Arc;

    use profiler_host::sync::{Lock, RaceCell};
    use profiler_log::{LogError, Scalar, ScalarLogger, TensorBoardLogger};

    pub(super) static ENVIRONMENT: RaceCell<Arc<LazyTensorBoard>> = RaceCell::new();

    /// A log whose file is created for its first entry, on the collector's thread: the measured thread that reads the
    /// environment does no I/O.
    pub(super) struct LazyTensorBoard {
        dir: PathBuf,
        log: RaceCell<Result<TensorBoardLogger, String>>,
        /// Held while the file is created, so that only one is.
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

        /// Returns the folder of the log, if it was opened.
        pub(super) fn folder(&self) -> Option<PathBuf> {
            let log = self.log.get()?.as_ref().ok()?;
            Some(log.dir().to_owned())
        }

        /// Opens the log if it is not open. A failure is final: each entry returns the same error.
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

    #[cfg(all(test, not(miri)))]
    mod tests {
        use std::{env, fs, process};

        use super::*;

        fn dir(name: &str) -> PathBuf {
            env::temp_dir().join(format!("profiler-lazy-{name}-{}", process::id()))
        }

        #[test]
        fn the_file_is_created_with_the_first_entry() {
            let dir = dir("first");
            let log = LazyTensorBoard::new(dir.clone());
            assert!(!dir.exists());
            for step in 0..2 {
                log.add_scalar("loss", 1.0, step)
                    .expect("the folder is writable");
            }
            assert_eq!(log.unsaved(), 2);
            assert_eq!(fs::read_dir(&dir).expect("it was created").count(), 1);
            drop(log);
            fs::remove_dir_all(dir).expect("it is the test's own");
        }

        #[test]
        fn each_entry_returns_the_error_of_a_log_that_cannot_be_opened() {
            let file = dir("file");
            fs::write(&file, "no folder").expect("a file can be made");
            let log = LazyTensorBoard::new(file.clone());
            let errors: Vec<String> = (0..2)
                .map(|step| log.add_scalar("loss", 1.0, step).unwrap_err().to_string())
                .collect();
            assert!(errors[0].contains("cannot write the log in"), "{errors:?}");
            assert_eq!(errors[0], errors[1]);
            assert_eq!(log.unsaved(), 0);
            fs::remove_file(file).expect("it is the test's own");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_log::{IntoLogger, LogFn, ScalarLogger};

    #[test]
    fn each_default_logger_is_shared_and_has_a_breaker_of_its_own() {
        let defaults = Defaults(Lock::new(Vec::new()));
        assert!(defaults.all().is_empty());
        for _ in 0..2 {
            let owned: Box<dyn ScalarLogger> = Box::new(LogFn::new(|_: &str, _: f64, _: u64| ()));
            defaults.add(owned.into_logger());
        }
        let (first, again) = (defaults.all(), defaults.all());
        assert_eq!((first.len(), again.len()), (2, 2));
        assert!(std::ptr::eq(first[0].breaker, again[0].breaker));
        assert!(!std::ptr::eq(first[0].breaker, first[1].breaker));
    }
}
