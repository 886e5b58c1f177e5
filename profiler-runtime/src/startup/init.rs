//! Setting the profiler up, and the guard that closes it down.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::diagnostics::{self, catch_own_panic};
use profiler_log::{IntoLogger, Logger};

use super::closing::close;
use super::flush::flush_and_close;
use super::{exit_summary, folders, summary_writer};
use crate::collect;
use crate::config::{Backend, Filter, LONGEST_INTERVAL, SHORTEST_INTERVAL, SummaryTarget};
use crate::cuda::{self, CudaError};
use crate::local;
use crate::session;
use crate::startup::error::InitError;
use crate::switch::{self, NEVER_MEASURES, with_control};

/// The number of guards. The last one closes the profiler down.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// Finds a guard that is dropped at once: before the first call site decides, while the program measures afterwards.
static GUARD_USE: AtomicU8 = AtomicU8::new(NOT_MEASURED);

/// No call site has decided yet.
const NOT_MEASURED: u8 = 0;
/// The last guard was dropped before a call site decided.
const DROPPED_UNUSED: u8 = 1;
/// A call site has decided.
const MEASURED: u8 = 2;

/// How long the last guard waits for loggers, and for sessions.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets the profiler up as the environment asks. The guard flushes the loggers and writes the summary when it is dropped:
/// keep it to the end of `main`.
///
/// A program need not call this. Without it the profiler starts with the first measured call, only warns of what fails (a
/// folder that cannot be written), and does the work of the guard in an exit handler.
///
/// # Errors
///
/// Returns an error if the environment asks for a log that cannot be opened (none is while `PROFILER_ENABLED` turns measuring
/// off), or for GPU times (`PROFILER_BACKEND=cuda`) where there are none.
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
#[must_use = "the profiler closes when its guard is dropped; keep it to the end of `main`: \
              `let _profiler = profiler_runtime::init()?;`"]
pub fn init() -> Result<ProfilerGuard, InitError> {
    builder().init()
}

/// Returns a builder for the program's own defaults. Variables of the environment take precedence over them.
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

/// The program's defaults for [`init`]; see [`builder`].
#[derive(Debug, Default)]
#[must_use = "nothing is set up until `init` is called"]
pub struct Builder {
    enabled: Option<bool>,
    filter: Option<Filter>,
    callers: Option<bool>,
    summary: Option<SummaryTarget>,
    summary_interval: Option<Duration>,
    gpu_samples: Option<Duration>,
    gpu_idle: Option<bool>,
    tensorboard: Option<PathBuf>,
    backend: Option<Backend>,
    thread_time: Option<bool>,
    loggers: Vec<Logger>,
}

impl Builder {
    /// Sets whether calls are measured, unless `PROFILER_ENABLED` is set. They are by default.
    pub fn enabled(self, enabled: bool) -> Self {
        Self {
            enabled: Some(enabled),
            ..self
        }
    }

    /// Sets which names are measured, unless `PROFILER_FILTER` is set: globs separated by commas. A glob after `-` excludes
    /// names.
    pub fn filter(self, globs: &str) -> Self {
        Self {
            filter: Some(Filter::parse(globs)),
            ..self
        }
    }

    /// Sets whether the running statistics count callers, unless `PROFILER_CALLERS` is set. They do not by default.
    ///
    /// [`Summary::call_tree`](crate::Summary::call_tree) then has the paths of all calls, and
    /// [`Summary::callers`](crate::Summary::callers) and [`Summary::callees`](crate::Summary::callees) have edges. All calls
    /// take the slow path, which costs some 100 ns more. At most 16,384 paths are followed; calls on further ones are
    /// counted by caller and callee.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{measure, summary};
    ///
    /// let _profiler = profiler_runtime::builder().callers(true).init()?;
    /// measure!("train", {
    ///     measure!("forward", {});
    /// });
    /// println!("{}", summary().callers());
    /// # if profiler_runtime::is_enabled() {
    /// let callers = summary().callers();
    /// assert!(callers.edges.iter().any(|edge| edge.caller.as_deref() == Some("train") && edge.callee == "forward"));
    /// # }
    /// # Ok::<(), profiler_runtime::InitError>(())
    /// ```
    pub fn callers(self, callers: bool) -> Self {
        Self {
            callers: Some(callers),
            ..self
        }
    }

    /// Sets where the summary is written when the guard is dropped, unless `PROFILER_SUMMARY` is set. The ending of a
    /// file's name selects the format: see [`SummaryTarget::File`].
    pub fn summary(self, target: SummaryTarget) -> Self {
        Self {
            summary: Some(target),
            ..self
        }
    }

    /// Sets how often the file of the summary is rewritten while the program runs, unless `PROFILER_SUMMARY_INTERVAL` is
    /// set: from 0.1 seconds to a day, other values are set to the nearer of the two. By default it is written at the end
    /// only.
    ///
    /// The command `profiler top FILE` shows such a file, in JSON, as it changes. A background thread writes the file under
    /// another name and renames it, so it is always whole (except where its folder takes no other file), and is the last one
    /// written if a signal ends the program. After
    /// a write that took long the thread rests for nineteen times as long, so that it never takes more than a twentieth of
    /// a processor. Streams, pipes and devices get the summary at the end only.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use profiler_runtime::SummaryTarget;
    ///
    /// let _profiler = profiler_runtime::builder()
    ///     .summary(SummaryTarget::File("live.json".into()))
    ///     .summary_interval(Duration::from_secs(1))
    ///     .init()?;
    /// # Ok::<(), profiler_runtime::InitError>(())
    /// ```
    pub fn summary_interval(self, interval: Duration) -> Self {
        Self {
            summary_interval: Some(interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)),
            ..self
        }
    }

    /// Sets how often the sensors of the GPUs are read, unless `PROFILER_GPU_SAMPLES` is set: from 0.1 seconds to a day,
    /// other values are set to the nearer of the two. By default they are not read. Takes the feature `cuda`.
    ///
    /// A background thread calls NVML, the library behind `nvidia-smi`; no other thread waits for it. One second is a good
    /// choice: NVML's calls hold a lock of the driver, for which launches of kernels wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let _profiler = profiler_runtime::builder().gpu_samples(Duration::from_secs(1)).init()?;
    /// # Ok::<(), profiler_runtime::InitError>(())
    /// ```
    pub fn gpu_samples(self, interval: Duration) -> Self {
        Self {
            gpu_samples: Some(interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)),
            ..self
        }
    }

    /// Sets whether the summary says which functions keep the devices waiting
    /// ([`Summary::gpu_idle`](crate::Summary::gpu_idle)), unless `PROFILER_GPU_IDLE` is set. It does by default.
    ///
    /// Measured calls do nothing for it. Once there are GPU times, a background thread samples the innermost function of each
    /// thread 25 times a second, and the profiler's thread that reads GPU times makes one call of the driver more for each.
    ///
    /// # Examples
    ///
    /// ```
    /// let _profiler = profiler_runtime::builder().gpu_idle(false).init()?;
    /// assert!(profiler_runtime::summary().gpu_idle.is_empty());
    /// # Ok::<(), profiler_runtime::InitError>(())
    /// ```
    pub fn gpu_idle(self, gpu_idle: bool) -> Self {
        Self {
            gpu_idle: Some(gpu_idle),
            ..self
        }
    }

    /// Writes each call that has no `log` of its own to a TensorBoard log in this folder, unless `PROFILER_TENSORBOARD` is
    /// set.
    pub fn tensorboard(self, dir: impl Into<PathBuf>) -> Self {
        Self {
            tensorboard: Some(dir.into()),
            ..self
        }
    }

    /// Sets which times are measured, unless `PROFILER_BACKEND` is set. The default is [`Backend::Auto`].
    pub fn backend(self, backend: Backend) -> Self {
        Self {
            backend: Some(backend),
            ..self
        }
    }

    /// Sets whether the thread time of each call is measured beside its elapsed time, unless `PROFILER_THREAD_TIME` is
    /// set: how long its thread ran on a processor, without the time in which it waited or was preempted. It is not by
    /// default, because each call then costs two system calls more.
    ///
    /// [`Row::thread_time_total_ns`](crate::report::Row::thread_time_total_ns) explains what is in it. Only Unix systems
    /// tell.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::time::Duration;
    ///
    /// use profiler_runtime::{measure, summary};
    ///
    /// let _profiler = profiler_runtime::builder().thread_time(true).init()?;
    /// measure!("sleep", { std::thread::sleep(Duration::from_millis(20)) });
    /// if let Some(row) = summary().row("sleep") {
    ///     let elapsed = row.cpu.map_or(0.0, |cpu| cpu.total_ns);
    ///     assert!(row.thread_time_total_ns < Some(elapsed / 2.0));
    /// }
    /// # }
    /// # Ok::<(), profiler_runtime::InitError>(())
    /// ```
    pub fn thread_time(self, thread_time: bool) -> Self {
        Self {
            thread_time: Some(thread_time),
            ..self
        }
    }

    /// Adds a logger for each call that has no `log` of its own.
    pub fn logger<Marker>(mut self, logger: impl IntoLogger<Marker>) -> Self {
        self.loggers.push(logger.into_logger());
        self
    }

    /// Sets the profiler up.
    ///
    /// # Errors
    ///
    /// Returns an error if a TensorBoard log cannot be opened, if the file for the summary has an ending that names no format,
    /// or if GPU times are required ([`Backend::Cuda`]) and there are none. While `PROFILER_ENABLED` turns measuring off, no
    /// log is opened; should the program turn it on later, a log that cannot be opened then is a warning.
    #[must_use = "the profiler closes when its guard is dropped; keep it to the end of `main`: \
                  `let _profiler = profiler_runtime::builder().init()?;`"]
    pub fn init(self) -> Result<ProfilerGuard, InitError> {
        super::ensure_started();
        if self.thread_time == Some(true) {
            local::calibrate_thread_time();
        }
        let has_outputs =
            self.summary.is_some() || self.tensorboard.is_some() || !self.loggers.is_empty();
        if let Some(objection) = self.summary.as_ref().and_then(SummaryTarget::objection) {
            diagnostics::warn_once(&objection);
        }
        let (tensorboard, refused) = with_control(|control| {
            let settings = &mut control.settings;
            let is_unset = |name| !settings.from_environment.contains(&name);
            let enabled = self.enabled.filter(|_| is_unset("PROFILER_ENABLED"));
            let filter = self.filter.filter(|_| is_unset("PROFILER_FILTER"));
            let summary = self.summary.filter(|_| is_unset("PROFILER_SUMMARY"));
            let (summary, refused) = summary.map(SummaryTarget::or_stderr).unzip();
            let for_summary = summary.as_ref().map(SummaryTarget::shows_callers);
            let callers = self.callers.or(for_summary.filter(|callers| *callers));
            let callers = callers.filter(|_| is_unset("PROFILER_CALLERS"));
            let backend = self.backend.filter(|_| is_unset("PROFILER_BACKEND"));
            let tensorboard = self
                .tensorboard
                .filter(|_| is_unset("PROFILER_TENSORBOARD"));
            let thread_time = self
                .thread_time
                .filter(|_| is_unset("PROFILER_THREAD_TIME"));
            settings.backend = backend.unwrap_or(settings.backend);
            cuda::apply_backend(settings.backend);
            settings.enabled = enabled.unwrap_or(settings.enabled);
            settings.summary = summary.unwrap_or_else(|| settings.summary.clone());
            if tensorboard.is_some() {
                settings.tensorboard.clone_from(&tensorboard);
            }
            if is_unset("PROFILER_GPU_SAMPLES") {
                settings.gpu_samples = self.gpu_samples.or(settings.gpu_samples);
            }
            if is_unset("PROFILER_GPU_IDLE") {
                settings.gpu_idle = self.gpu_idle.unwrap_or(settings.gpu_idle);
            }
            if is_unset("PROFILER_SUMMARY_INTERVAL") {
                settings.summary_interval = self.summary_interval.or(settings.summary_interval);
            }
            if let Some(thread_time) = thread_time {
                control.set_thread_time(thread_time);
            }
            if let Some(filter) = filter {
                control.set_filter(filter);
            }
            if let Some(callers) = callers {
                control.set_callers(callers);
            }
            (tensorboard, refused.flatten())
        });
        // A stripped program keeps its calls of `init`, and writes nothing.
        if !NEVER_MEASURES {
            folders::prepare();
            if has_outputs {
                switch::write_before_ending();
            }
            summary_writer::begin();
            if let Some(refused) = refused {
                return Err(refused.into());
            }
            require_cuda()?;
            cuda::nvml::begin(None);
            let is_off = switch::is_off_by_environment();
            if !is_off {
                collect::open_from_environment()?;
            }
            for logger in self.loggers {
                collect::add_default(logger);
            }
            if let Some(dir) = tensorboard {
                let log = if is_off {
                    collect::tensorboard_on_demand(dir)
                } else {
                    open_tensorboard(dir)?
                };
                collect::add_default(log);
            }
        }
        GUARDS.fetch_add(1, Relaxed);
        replace_use(DROPPED_UNUSED, NOT_MEASURED);
        Ok(ProfilerGuard { _private: () })
    }
}

/// Replaces one state of [`GUARD_USE`] by another; leaves other states alone.
fn replace_use(old: u8, new: u8) {
    let _ = GUARD_USE.compare_exchange(old, new, Relaxed, Relaxed);
}

/// Warns if the guard of [`init`] was dropped before the program began to measure. Called when a call site decides.
pub(crate) fn warn_of_unused_guard() {
    if GUARD_USE.swap(MEASURED, Relaxed) == DROPPED_UNUSED {
        diagnostics::warn_once(
            "the guard of `init` was dropped before anything was measured, which closed the profiler: keep it to the \
             end of `main`, as in `let _profiler = profiler_runtime::init()?;` (`let _ = …` drops it at once)",
        );
    }
}

/// Returns an error if GPU times are required and there are none.
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

fn open_tensorboard(dir: PathBuf) -> Result<Logger, InitError> {
    let log = profiler_log::TensorBoardLogger::new(dir)?;
    Ok(std::sync::Arc::new(log).into_logger())
}

/// A guard that flushes the loggers and writes the summary when it is dropped.
///
/// Created by [`init`]. If there are several guards, the last one to be dropped does it.
#[derive(Debug)]
#[must_use = "the profiler closes when its guard is dropped; keep it to the end of `main`: \
              `let _profiler = profiler_runtime::init()?;`, and not `let _ = …`, which drops the guard at once"]
pub struct ProfilerGuard {
    _private: (),
}

impl Drop for ProfilerGuard {
    fn drop(&mut self) {
        if GUARDS.fetch_sub(1, Relaxed) == 1 {
            replace_use(NOT_MEASURED, DROPPED_UNUSED);
            // Each step on its own, so that a panic in one does not skip the others.
            catch_own_panic("its guard was dropped", cuda::return_magazines);
            // Before the flush, which stops reading GPU times: the last windows may need some.
            catch_own_panic("sessions were closed", || {
                session::finish(CLOSE_TIMEOUT, session::FinishMode::Environment);
            });
            catch_own_panic("the last summary was written", || {
                close(|| flush_and_close(CLOSE_TIMEOUT), exit_summary::write);
            });
        }
    }
}
