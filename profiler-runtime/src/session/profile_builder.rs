//! Configuring and starting sessions.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_host::sync::ReentrancyGuard;
use profiler_log::LogOutcome;

use super::handler::Handler;
use super::live::{Session, SessionConfig};
use super::options::copied;
use super::profile::{Profile, ProfileError};
use super::trace::Trace;
use super::{Activity, SessionOptions, at_exit};
use crate::config::{ActionFn, IntoSchedule, LONGEST_INTERVAL, SHORTEST_INTERVAL};
use crate::cuda;
use crate::switch::with_control;

/// The default capacity of a window: 1,000,000 scopes.
///
/// With CPU times alone that takes some 100 MB, with a GPU time for each scope some 200 MB. A window uses memory for
/// the scopes it has; a session may have several windows at once.
///
/// In addition, each thread that records has a ring for scopes that are not collected yet, until it ends: eight entries
/// of about 80 bytes for each entry of `PROFILER_RING`, which is 1.3 MB by default.
pub const DEFAULT_CAPACITY: usize = 1_000_000;

impl Profile {
    /// Returns a builder for a session.
    pub fn builder() -> ProfileBuilder {
        ProfileBuilder::default()
    }
}

/// Configures a session: what it records, and where its windows go. Made by [`Profile::builder`].
#[must_use = "nothing is recorded until `start` or `run` is called"]
pub struct ProfileBuilder {
    options: SessionOptions,
    capacity: usize,
    schedule: Option<ActionFn>,
    objection: Option<String>,
    /// `true` if the capacity was set to zero.
    is_empty: bool,
    handlers: Vec<Handler>,
    is_environment: bool,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        Self {
            options: SessionOptions::DEFAULT,
            capacity: DEFAULT_CAPACITY,
            schedule: None,
            objection: None,
            is_empty: false,
            handlers: Vec::new(),
            is_environment: false,
        }
    }
}

impl ProfileBuilder {
    /// Sets the activities to record, as an array, a slice, a vector or an iterator; both by default. Without [`Activity::Cpu`] traces and tables have no CPU times,
    /// without [`Activity::Cuda`] no GPU times. A session that is given [`Activity::Cuda`] warns if a window has scopes
    /// and no GPU times; [`Trace::no_cuda_reason`] returns the reason.
    pub fn activities(mut self, activities: impl IntoIterator<Item: Borrow<Activity>>) -> Self {
        (self.options.cpu, self.options.cuda) = (false, false);
        for activity in copied(activities) {
            self.options.set(activity, true);
        }
        self.options.expects_cuda = self.options.cuda;
        self
    }

    /// Sets which steps are recorded: a [`Schedule`](crate::Schedule), or a function from the number of a step to an
    /// [`Action`](crate::session::Action). Without a schedule, one window is open from start to end.
    pub fn schedule(self, schedule: impl IntoSchedule) -> Self {
        Self {
            objection: schedule.objection(),
            schedule: Some(schedule.into_schedule()),
            ..self
        }
    }

    /// Adds a handler that is called with each complete window: a closure or function that takes `&Trace` and returns
    /// nothing or a `Result`. An error is reported as a warning. Handlers run on a thread of the session's own, one
    /// window after the other; a handler that panics is not called again. Can be called several times.
    pub fn on_trace_ready<F, R>(mut self, handler: F) -> Self
    where
        F: FnMut(&Trace) -> R + Send + 'static,
        R: LogOutcome,
    {
        self.handlers.push(Handler::new(handler));
        self
    }

    /// Evaluates and records the argument `shapes`; off by default.
    pub fn record_shapes(mut self, record_shapes: bool) -> Self {
        self.options.record_shapes = record_shapes;
        self
    }

    /// Records the memory that scopes allocate; off by default. Host memory is counted through
    /// [`ProfilerAllocator`](crate::ProfilerAllocator), device memory by asking the driver at both ends of each scope.
    /// Futures have neither.
    pub fn profile_memory(mut self, profile_memory: bool) -> Self {
        self.options.profile_memory = profile_memory;
        self
    }

    /// Records the names of all enclosing scopes with file and line; off by default. Enclosing scopes inside the window
    /// are known without it. Of deeper stacks, the innermost 512 are kept.
    pub fn with_stack(mut self, with_stack: bool) -> Self {
        self.options.with_stack = with_stack;
        self
    }

    /// Records the native stack of each scope; off by default. Expensive: some microseconds for each scope, and
    /// milliseconds for each one that is displayed.
    pub fn native_stack(mut self, native_stack: bool) -> Self {
        self.options.native_stack = native_stack;
        self
    }

    /// Reads the sensors of the GPUs this often while windows are open: from 0.1 seconds to a day, other values are set to
    /// the nearer of the two. They are read at the ends of each window too. By default they are not read, unless
    /// `PROFILER_GPU_SAMPLES` or [`Builder::gpu_samples`](crate::Builder::gpu_samples) asks for samples of the whole run.
    /// Takes the feature `cuda`. `PROFILER_GPU_SAMPLES=off` overrides it.
    pub fn gpu_samples(mut self, interval: Duration) -> Self {
        let interval = interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        self.options.gpu_samples = Some(interval);
        self
    }

    /// Records the kernels, copies, fills and waits inside each scope, through CUPTI; by default if its library is found
    /// and no other tool uses it. Needs [`Activity::Cuda`] and the feature `cuda`. `PROFILER_KERNELS` overrides it.
    ///
    /// If a window opens at once, [`start`](Self::start) waits until CUPTI records: by default for 0.25 seconds at most,
    /// with `true` for 10 seconds at most. It takes some milliseconds, the first time up to some seconds; a step of warm-up
    /// hides it. The session of `PROFILER_TRACE` begins at the first measured call, and that waits only with
    /// `PROFILER_KERNELS=1`.
    ///
    /// With `true`, a warning says why if kernels cannot be recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let (_, trace) = Profile::builder().kernels(false).run(|_| {
    ///     let _scope = scope!("forward");
    /// });
    /// assert!(trace?.lost_work().is_complete());
    /// # Ok::<(), profiler_runtime::session::ProfileError>(())
    /// ```
    pub fn kernels(mut self, kernels: bool) -> Self {
        self.options.kernels = kernels.into();
        self
    }

    /// Sets how many scopes a window holds at most; [`DEFAULT_CAPACITY`] by default, at least 1. Scopes beyond that are
    /// counted ([`Truncation::over_capacity`](crate::session::Truncation)); the next window starts empty.
    pub fn capacity(self, scopes: usize) -> Self {
        Self {
            is_empty: scopes == 0,
            capacity: scopes.clamp(1, u32::MAX as usize - 1),
            ..self
        }
    }

    /// Marks the environment's session.
    pub(crate) fn of_environment(self) -> Self {
        Self {
            is_environment: true,
            ..self
        }
    }

    /// Starts the session.
    ///
    /// # Errors
    ///
    /// Returns an error if the system starts no threads for it, if no activity is recorded, or if the process was
    /// forked from a measured one.
    pub fn start(self) -> Result<Profile, ProfileError> {
        if !self.options.cpu && !self.options.cuda {
            return Err(ProfileError::NoActivity);
        }
        if !fork::is_own_process() {
            return Err(ProfileError::Forked);
        }
        if let Some(objection) = &self.objection {
            diagnostics::warn_once(objection);
        }
        if self.is_empty {
            diagnostics::warn_once(
                "the session's `capacity` is 0, which counts as 1: set it to the number of scopes that a window holds",
            );
        }
        let gpu_samples = self.options.gpu_samples.filter(|_| !are_samples_off());
        if gpu_samples.is_some() {
            cuda::nvml::begin(gpu_samples);
        }
        let setup = SessionConfig {
            options: SessionOptions {
                gpu_samples,
                kernels: with_control(|control| control.settings.kernels)
                    .unwrap_or(self.options.kernels),
                ..self.options
            },
            capacity: self.capacity,
            schedule: self.schedule,
            handlers: self.handlers,
            is_environment: self.is_environment,
        };
        let _busy = ReentrancyGuard::try_enter();
        let (session, handlers) = Session::new(setup);
        at_exit::remember(&session);
        let started = session.start(handlers);
        started.map_err(|source| ProfileError::NoThread { source })?;
        Ok(Profile {
            session: Some(session),
        })
    }

    /// Runs `f` in a session and waits for its last window, at most ten seconds. Returns the value of `f`, and the
    /// window or an error.
    ///
    /// `f` runs exactly once: if the session cannot be started, its [`Profile`] records nothing.
    ///
    /// # Errors
    ///
    /// The second part is an error in the cases of [`start`](Self::start), if the window is not complete in time, or if
    /// there was no window.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let (sum, trace) = Profile::builder().run(|_profile| {
    ///     let _scope = scope!("sum");
    ///     (0..100).sum::<u32>()
    /// });
    /// assert_eq!(sum, 4950);
    /// let trace = trace?;
    /// # if profiler_runtime::is_enabled() {
    /// assert_eq!(trace.events().filter(|event| event.name() == "sum").count(), 1);
    /// # }
    /// # Ok::<(), profiler_runtime::session::ProfileError>(())
    /// ```
    pub fn run<T>(self, f: impl FnOnce(&Profile) -> T) -> (T, Result<Arc<Trace>, ProfileError>) {
        match self.start() {
            Ok(profile) => {
                let value = f(&profile);
                (value, profile.last_window())
            }
            Err(error) => (f(&Profile { session: None }), Err(error)),
        }
    }
}

/// How long [`ProfileBuilder::run`] waits for its window.
const PATIENCE: Duration = Duration::from_secs(10);

impl Profile {
    /// Ends the session, waits for its last window, at most ten seconds, and returns it: what `prof` is after the block of
    /// `with profile(…) as prof:`. The handlers of [`on_trace_ready`](ProfileBuilder::on_trace_ready) get it too.
    ///
    /// # Errors
    ///
    /// Returns an error if the window is not complete in time, or if there was none.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, TableOptions, record_function};
    ///
    /// let prof = Profile::builder().start()?;
    /// record_function!("model_inference", { (0..100).sum::<u32>() });
    /// let trace = prof.finish()?;
    /// println!("{}", trace.key_averages().table(TableOptions::new().row_limit(10)));
    /// # Ok::<(), profiler_runtime::session::ProfileError>(())
    /// ```
    pub fn finish(self) -> Result<Arc<Trace>, ProfileError> {
        self.last_window()
    }

    /// Ends the session and waits for its last window.
    fn last_window(&self) -> Result<Arc<Trace>, ProfileError> {
        self.stop();
        if !self.wait(PATIENCE) {
            return Err(ProfileError::NotReady { waited: PATIENCE });
        }
        let closed = self
            .session
            .as_ref()
            .map_or(0, |session| session.delivery.closed());
        self.trace().ok_or(if closed > 0 {
            ProfileError::Lost
        } else {
            ProfileError::NoWindow
        })
    }
}

impl std::fmt::Debug for ProfileBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProfileBuilder")
            .field("options", &self.options)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// Returns `true` if `PROFILER_GPU_SAMPLES` says that no session has samples.
fn are_samples_off() -> bool {
    with_control(|control| {
        let settings = &control.settings;
        let is_set = settings.from_environment.contains(&"PROFILER_GPU_SAMPLES");
        is_set && settings.gpu_samples.is_none()
    })
}
