//! Sessions as the program sees them.

use std::sync::Arc;
use std::time::Duration;

use super::handler::Handler;
use super::live::{Session, SessionConfig};
use super::trace::Trace;
use super::{Activity, Options};
use crate::config::{Action, ActionFn, IntoSchedule};
use crate::diagnostics;
use crate::diagnostics::contain::contained;
use crate::log::LogOutcome;
use crate::process::fork;

/// How many scopes a window holds at most, unless the session says otherwise: 1,000,000. With CPU times alone
/// that takes some 100 MB, with a GPU time of each scope some 200 MB; a window takes what it has, and each
/// session may have some windows at once.
///
/// Each thread that records has room for the scopes that are not taken yet beside that, until it ends: eight for each
/// entry of `PROFILER_RING`, about 80 bytes each; 1.3 MB unless that is set.
pub const DEFAULT_CAPACITY: usize = 1_000_000;

/// A session that records windows of the run, until it is stopped or dropped.
///
/// Several may be there at once; none disturbs another, nor the statistics that are always there. It may be shared
/// among threads.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use profiler_runtime::{Profile, Schedule, scope};
///
/// let profile = Profile::builder()
///     .schedule(Schedule::new().wait(1).warmup(1).active(2).repeat(1))
///     .on_trace_ready(|trace| println!("{} scopes up to step {}", trace.len(), trace.step_num()))
///     .start()?;
/// for _ in 0..6 {
///     let _scope = scope!("batch");
///     profile.step();
/// }
/// profile.stop();
/// assert!(profile.wait(Duration::from_secs(10)));
/// # Ok::<(), profiler_runtime::ProfileError>(())
/// ```
#[derive(Debug)]
#[must_use = "a session ends when its guard is dropped: bind it, as in `let profile = Profile::builder().start()?;`"]
pub struct Profile {
    /// None in a call of [`ProfileBuilder::run`] whose session could not be started: nothing is recorded.
    session: Option<Arc<Session>>,
}

impl Profile {
    /// What a session is to record, and who gets it.
    pub fn builder() -> ProfileBuilder {
        ProfileBuilder::default()
    }

    /// Ends a step and begins the next one, as the schedule says. Windows are closed and opened here; nothing is
    /// waited for.
    pub fn step(&self) {
        if let Some(session) = &self.session {
            session.step();
        }
    }

    /// Ends the session. A window that is open is handed over as it is; a warm-up leaves nothing. Handlers may
    /// run later: [`wait`](Self::wait) waits for them.
    pub fn stop(&self) {
        if let Some(session) = &self.session {
            session.stop();
        }
    }

    /// Waits until the handlers of all windows that are closed have returned; false where that takes longer than
    /// `timeout`: the device or a handler is still at work.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| session.delivery.wait(timeout))
    }

    /// Turns activities off, and on again, from now on: in the window that is open and in those to come. An
    /// activity that the session was not started with stays off. A scope has what was on when it began: with the CPU off
    /// and the GPU on, its GPU time alone; with both off it is not in the window.
    pub fn toggle_collection(&self, enable: bool, activities: &[Activity]) {
        if let Some(session) = &self.session {
            session.toggle(enable, activities);
        }
    }

    /// Adds a pair to the traces of the windows that close from now on; a key that is there gets the new value.
    pub fn add_metadata(&self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(session) = &self.session {
            session.add_metadata(key.into(), value.into());
        }
    }

    /// The number of the step: how many calls of [`step`](Self::step) there were.
    #[must_use]
    pub fn step_num(&self) -> u64 {
        self.session
            .as_ref()
            .map_or(0, |session| session.step_num())
    }

    /// What is done in this step.
    #[must_use]
    pub fn action(&self) -> Action {
        let session = self.session.as_ref();
        session.map_or(Action::None, |session| session.action())
    }

    /// The last window, of a session without [`on_trace_ready`](ProfileBuilder::on_trace_ready): it is kept until
    /// the next one. None before the first is complete; [`wait`](Self::wait) waits for it.
    #[must_use]
    pub fn trace(&self) -> Option<Arc<Trace>> {
        self.session.as_ref()?.delivery.last_trace()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        contained("a session was stopped", || self.stop());
    }
}

/// What a session is to record, and who gets it; made by [`Profile::builder`].
#[must_use = "nothing is recorded until `start` or `run` is called"]
pub struct ProfileBuilder {
    options: Options,
    capacity: usize,
    schedule: Option<ActionFn>,
    objection: Option<String>,
    handlers: Vec<Handler>,
    is_own: bool,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        Self {
            options: Options::DEFAULT,
            capacity: DEFAULT_CAPACITY,
            schedule: None,
            objection: None,
            handlers: Vec::new(),
            is_own: false,
        }
    }
}

impl ProfileBuilder {
    /// What is recorded; both by default. Without [`Activity::Cpu`] traces and tables have no CPU times, without
    /// [`Activity::Cuda`] no GPU times.
    pub fn activities(mut self, activities: impl IntoIterator<Item = Activity>) -> Self {
        (self.options.cpu, self.options.cuda) = (false, false);
        for activity in activities {
            self.options.set(activity, true);
        }
        self
    }

    /// Which steps are recorded: a [`Schedule`](crate::Schedule), or a function from the step's number to an
    /// [`Action`]. Without one, the window is open from the start to the end.
    pub fn schedule(self, schedule: impl IntoSchedule) -> Self {
        Self {
            objection: schedule.objection(),
            schedule: Some(schedule.into_schedule()),
            ..self
        }
    }

    /// Who gets each window when it is complete: a closure or function that takes `&Trace` and returns nothing or a
    /// `Result`, whose error is warned of. It runs on a thread of the session's own, for one window after the other;
    /// one that panics is not called again. May be given several times.
    pub fn on_trace_ready<F, R>(mut self, handler: F) -> Self
    where
        F: FnMut(&Trace) -> R + Send + 'static,
        R: LogOutcome,
    {
        self.handlers.push(Handler::new(handler));
        self
    }

    /// Whether the argument `shapes` is evaluated and recorded; off by default.
    pub fn record_shapes(mut self, record_shapes: bool) -> Self {
        self.options.record_shapes = record_shapes;
        self
    }

    /// Whether the memory that scopes take is recorded; off by default. Host memory is seen through
    /// [`ProfilerAllocator`](crate::ProfilerAllocator), device memory by asking the driver at both ends of each
    /// scope. Futures have neither.
    pub fn profile_memory(mut self, profile_memory: bool) -> Self {
        self.options.profile_memory = profile_memory;
        self
    }

    /// Whether each scope has the chain of all scopes around it, with file and line; off by default. Those around it
    /// in the window it has anyway; of a deeper chain, the innermost 512.
    pub fn with_stack(mut self, with_stack: bool) -> Self {
        self.options.with_stack = with_stack;
        self
    }

    /// Whether each scope has the frames of the program's own stack; off by default, and dear: some microseconds
    /// for each scope, and milliseconds for each that is looked at.
    pub fn native_stack(mut self, native_stack: bool) -> Self {
        self.options.native_stack = native_stack;
        self
    }

    /// How many scopes a window holds at most; [`DEFAULT_CAPACITY`] unless it is given. What comes then is counted
    /// ([`Truncation::over_capacity`](crate::Truncation)), and the next window begins anew. 0 is taken for 1.
    pub fn capacity(self, scopes: usize) -> Self {
        Self {
            capacity: scopes.clamp(1, u32::MAX as usize - 1),
            ..self
        }
    }

    /// A session of the environment.
    pub(crate) fn own(self) -> Self {
        Self {
            is_own: true,
            ..self
        }
    }

    /// Starts the session.
    ///
    /// # Errors
    ///
    /// If the system gives no threads for it, nothing is to be recorded, or the process was forked from a measured
    /// one.
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
        let setup = SessionConfig {
            options: self.options,
            capacity: self.capacity,
            schedule: self.schedule,
            handlers: self.handlers,
            is_own: self.is_own,
        };
        let session = Session::start(setup).map_err(|source| ProfileError::NoThread { source })?;
        Ok(Profile {
            session: Some(session),
        })
    }

    /// Runs `f` in a session and waits for its last window, at most ten seconds. Returns the value of `f`, and the
    /// window or why there is none.
    ///
    /// `f` runs once in any case: where the session cannot be started, its [`Profile`] records nothing.
    ///
    /// # Errors
    ///
    /// The second part is an error in the cases of [`start`](Self::start); and if no window is complete in time, or
    /// there was none.
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
    /// # Ok::<(), profiler_runtime::ProfileError>(())
    /// ```
    pub fn run<T>(self, f: impl FnOnce(&Profile) -> T) -> (T, Result<Arc<Trace>, ProfileError>) {
        match self.start() {
            Ok(profile) => {
                profile.keep_trace();
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
    /// Has the last trace kept, though there are handlers.
    fn keep_trace(&self) {
        if let Some(session) = &self.session {
            session.delivery.keep_trace();
        }
    }

    /// Ends the session and waits for its last window.
    fn last_window(&self) -> Result<Arc<Trace>, ProfileError> {
        self.stop();
        if !self.wait(PATIENCE) {
            return Err(ProfileError::NotReady { waited: PATIENCE });
        }
        self.trace().ok_or(ProfileError::NoWindow)
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

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No activity was given.
    #[error(
        "a session without activities records nothing: give `Activity::Cpu`, `Activity::Cuda` or both"
    )]
    NoActivity,
    /// The system gives no thread.
    #[error("the threads of a session cannot be started: {source}; see the limits of the process")]
    NoThread {
        /// What the system notices.
        source: std::io::Error,
    },
    /// The process was forked from a measured one.
    #[error(
        "a process forked from a measured one has none of the profiler's threads: fork first, and measure then"
    )]
    Forked,
    /// The last window is not complete.
    #[error(
        "the window was not complete after {waited:?}: the device or a handler is still at work; use `start` and \
         wait longer"
    )]
    NotReady {
        /// How long it was waited for.
        waited: Duration,
    },
    /// There was no window.
    #[error("the schedule recorded no window: run at least as many steps as it waits and warms up")]
    NoWindow,
}
