//! Setting up, and the guard that closes down.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::flush::flush_and_close;
use crate::collect;
use crate::config::{Backend, Filter, SummaryTarget};
use crate::cuda::{self, CudaError};
use crate::diagnostics::catch_own_panic;
use crate::log::{IntoLogger, Logger};
use crate::session;
use crate::startup::error::InitError;
use crate::startup::exit;
use crate::switch::with_control;

/// How many guards there are: the last one closes down.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// How long a guard waits for loggers when it is dropped.
const CLOSING: Duration = Duration::from_secs(5);

/// Sets the profiler up as the environment asks. The guard flushes the loggers and writes the summary
/// when it is dropped: keep it to the end of `main`.
///
/// A program need not call this: without it everything works too, but what the environment asks for
/// and cannot be had (a folder that cannot be written) is only warned of, and the end of the program
/// is caught as well as an exit handler can.
///
/// # Errors
///
/// If the environment asks for a log that cannot be opened, or for GPU times (`PROFILER_BACKEND=cuda`) where
/// there are none.
///
/// # Examples
///
/// ```
/// fn main() -> Result<(), profiler_runtime::InitError> {
///     let _profiler = profiler_runtime::init()?;
///     // the program
///     Ok(())
/// }
/// ```
pub fn init() -> Result<Profiler, InitError> {
    builder().init()
}

/// Sets the profiler up with defaults of the program's own; variables of the environment that are set
/// win over them.
///
/// # Examples
///
/// ```
/// use profiler_runtime::SummaryTarget;
///
/// let _profiler = profiler_runtime::builder()
///     .filter("train::*,-train::io::*")
///     .summary(SummaryTarget::Stderr)
///     .init()?;
/// # Ok::<(), profiler_runtime::InitError>(())
/// ```
pub fn builder() -> Builder {
    Builder::default()
}

/// Defaults for [`init`]; see [`builder`].
#[derive(Debug, Default)]
#[must_use = "nothing is set up until `init` is called"]
pub struct Builder {
    enabled: Option<bool>,
    filter: Option<Filter>,
    summary: Option<SummaryTarget>,
    tensorboard: Option<PathBuf>,
    backend: Option<Backend>,
    loggers: Vec<Logger>,
}

impl Builder {
    /// Whether calls are measured, unless `PROFILER_ENABLED` says otherwise; on by default.
    pub fn enabled(self, enabled: bool) -> Self {
        Self {
            enabled: Some(enabled),
            ..self
        }
    }

    /// Which names are measured, unless `PROFILER_FILTER` says otherwise: globs separated by commas,
    /// `-` before one excludes.
    pub fn filter(self, globs: &str) -> Self {
        Self {
            filter: Some(Filter::parse(globs)),
            ..self
        }
    }

    /// Where the summary goes when the guard is dropped, unless `PROFILER_SUMMARY` says otherwise.
    pub fn summary(self, target: SummaryTarget) -> Self {
        Self {
            summary: Some(target),
            ..self
        }
    }

    /// Writes each call of a name without a `log` of its own to a TensorBoard log in this folder,
    /// unless `PROFILER_TENSORBOARD` names another.
    pub fn tensorboard(self, dir: impl Into<PathBuf>) -> Self {
        Self {
            tensorboard: Some(dir.into()),
            ..self
        }
    }

    /// What takes the times, unless `PROFILER_BACKEND` says otherwise; [`Backend::Auto`] by default.
    pub fn backend(self, backend: Backend) -> Self {
        Self {
            backend: Some(backend),
            ..self
        }
    }

    /// Hands each call of a name without a `log` of its own to this logger. May be given several
    /// times.
    pub fn logger<Marker>(mut self, logger: impl IntoLogger<Marker>) -> Self {
        self.loggers.push(logger.into_logger());
        self
    }

    /// Sets the profiler up.
    ///
    /// # Errors
    ///
    /// If a log that was asked for cannot be opened, or the crate was built without it; if GPU times were
    /// asked for ([`Backend::Cuda`]) and cannot be had.
    pub fn init(self) -> Result<Profiler, InitError> {
        super::ensure_started();
        let tensorboard_set = with_control(|control| {
            let settings = &mut control.settings;
            let is_free = |name| !settings.from_environment.contains(&name);
            let enabled = self.enabled.filter(|_| is_free("PROFILER_ENABLED"));
            let filter = self.filter.filter(|_| is_free("PROFILER_FILTER"));
            let summary = self.summary.filter(|_| is_free("PROFILER_SUMMARY"));
            let backend = self.backend.filter(|_| is_free("PROFILER_BACKEND"));
            settings.backend = backend.unwrap_or(settings.backend);
            cuda::apply_backend(settings.backend);
            settings.enabled = enabled.unwrap_or(settings.enabled);
            settings.summary = summary.unwrap_or_else(|| settings.summary.clone());
            if let Some(filter) = filter {
                control.set_filter(filter);
            }
            control.settings.tensorboard.is_some()
        });
        // A stripped program keeps its set-up code, and writes nothing.
        if !cfg!(feature = "strip") {
            require_cuda()?;
            collect::open_from_environment()?;
            for logger in self.loggers {
                collect::add_default(logger);
            }
            if let Some(dir) = self.tensorboard.filter(|_| !tensorboard_set) {
                collect::add_default(open_tensorboard(dir)?);
            }
        }
        GUARDS.fetch_add(1, Relaxed);
        Ok(Profiler { _private: () })
    }
}

/// GPU times that were asked for in so many words are to be had, or it is an error.
fn require_cuda() -> Result<(), CudaError> {
    if with_control(|control| control.settings.backend) != Backend::Cuda {
        return Ok(());
    }
    let status = cuda::status();
    if status.is_ready() {
        Ok(())
    } else {
        Err(CudaError { status })
    }
}

#[cfg(feature = "tensorboard")]
fn open_tensorboard(dir: PathBuf) -> Result<Logger, InitError> {
    let log = crate::log::TensorBoardLogger::new(dir)?;
    Ok(std::sync::Arc::new(log).into_logger())
}

#[cfg(not(feature = "tensorboard"))]
fn open_tensorboard(_dir: PathBuf) -> Result<Logger, InitError> {
    Err(InitError::NoTensorBoard)
}

/// Flushes the loggers and writes the summary when it is dropped.
///
/// Made by [`init`]. Where there are several, the last one to go does it.
#[derive(Debug)]
#[must_use = "the summary is written when the guard is dropped: keep it to the end of `main`"]
pub struct Profiler {
    _private: (),
}

impl Drop for Profiler {
    fn drop(&mut self) {
        if GUARDS.fetch_sub(1, Relaxed) == 1 {
            // One after the other, so that a panic in one leaves the others.
            catch_own_panic("its guard went", cuda::return_magazines);
            // What is written of windows may need GPU times, which are read until all is closed.
            catch_own_panic("sessions were closed", || {
                session::finish(CLOSING, session::FinishMode::Environment);
            });
            catch_own_panic("loggers were flushed", || flush_and_close(CLOSING));
            catch_own_panic("the summary was written", exit::write_summary);
        }
    }
}
