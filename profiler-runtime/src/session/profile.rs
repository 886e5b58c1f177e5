//! Sessions as the program sees them.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use profiler_host::debug_with_message;
use profiler_host::diagnostics::catch_own_panic;

use super::live::Session;
use super::options::{Activity, copied};
use super::trace::Trace;
use crate::config::Action;

/// A session that records windows of the run, until it is stopped or dropped.
///
/// Several sessions may run at once. They disturb neither each other nor the statistics. A session can be shared among
/// threads.
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
/// # Ok::<(), profiler_runtime::session::ProfileError>(())
/// ```
#[derive(Debug)]
#[must_use = "a session ends when its guard is dropped: bind it, as in `let profile = Profile::builder().start()?;`"]
pub struct Profile {
    /// `None` in `ProfileBuilder::run` if the session could not be started: nothing is recorded.
    pub(super) session: Option<Arc<Session>>,
}

impl Profile {
    /// Ends a step and begins the next one, as the schedule says. Windows open and close here; the call never waits.
    pub fn step(&self) {
        if let Some(session) = &self.session {
            session.step();
        }
    }

    /// Ends the session. An open window is delivered as it is; a warm-up is discarded. Handlers may run later:
    /// [`wait`](Self::wait) waits for them. [`trace`](Self::trace) returns the last window then.
    pub fn stop(&self) {
        if let Some(session) = &self.session {
            session.stop();
        }
    }

    /// Waits until the handlers have returned for all windows that are closed by now. Returns `false` after `timeout`,
    /// if the device or a handler is still busy.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| session.wait(timeout))
    }

    /// Turns activities off and on again, in the open window and in later ones. An activity that the session was not
    /// started with stays off. A scope records the activities that were on when it began: with the CPU off and the GPU
    /// on, only its GPU time; with both off, nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Activity, Profile, scope};
    ///
    /// let ((), trace) = Profile::builder().run(|profile| {
    ///     profile.toggle_collection(false, [Activity::Cpu, Activity::Cuda]);
    ///     let _scope = scope!("left out");
    /// });
    /// assert_eq!(trace?.len(), 0);
    /// # Ok::<(), profiler_runtime::session::ProfileError>(())
    /// ```
    pub fn toggle_collection(
        &self,
        enable: bool,
        activities: impl IntoIterator<Item: Borrow<Activity>>,
    ) {
        if let Some(session) = &self.session {
            let activities: Vec<Activity> = copied(activities).collect();
            session.toggle(enable, &activities);
        }
    }

    /// An alias of [`toggle_collection`](Self::toggle_collection), under the name that `torch.profiler` uses.
    pub fn toggle_collection_dynamic(
        &self,
        enable: bool,
        activities: impl IntoIterator<Item: Borrow<Activity>>,
    ) {
        self.toggle_collection(enable, activities);
    }

    /// Adds a key and a value to the traces of windows that close from now on, or replaces the value of the key.
    pub fn add_metadata(&self, key: impl Into<String>, value: impl Into<String>) {
        if let Some(session) = &self.session {
            session.add_metadata(key.into(), value.into());
        }
    }

    /// Returns the number of the current step: the number of calls of [`step`](Self::step) so far.
    #[must_use]
    pub fn step_num(&self) -> u64 {
        self.session
            .as_ref()
            .map_or(0, |session| session.step_num())
    }

    /// Returns the action of the current step.
    #[must_use]
    pub fn action(&self) -> Action {
        let session = self.session.as_ref();
        session.map_or(Action::None, |session| session.action())
    }

    /// Returns the last window whose handlers have returned, or `None` before the first one; [`wait`](Self::wait) waits for
    /// it. A window is kept until the next one replaces it.
    #[must_use]
    pub fn trace(&self) -> Option<Arc<Trace>> {
        self.session.as_ref()?.delivery.last_trace()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        catch_own_panic("a session was stopped", || self.stop());
    }
}

/// Why a session could not be started, or has no window.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No activity was selected.
    #[error(
        "a session without activities records nothing: give `Activity::Cpu`, `Activity::Cuda` or both"
    )]
    NoActivity,
    /// The system did not start a thread.
    #[error("the threads of a session cannot be started: {source}; see the limits of the process")]
    NoThread {
        /// The error of the system.
        source: std::io::Error,
    },
    /// The process was forked from a measured one.
    #[error(
        "a process forked from a measured one has none of the profiler's threads: fork first, and measure then"
    )]
    Forked,
    /// The last window was not complete in time.
    #[error(
        "the window was not complete after {waited:?}: the device or a handler is still at work; use `start` and \
         wait longer"
    )]
    NotReady {
        /// How long the call waited.
        waited: Duration,
    },
    /// The last window was lost.
    #[error("the windows of the session were lost as they were put together: a warning says why")]
    Lost,
    /// There was no window.
    #[error("the schedule recorded no window: run at least as many steps as it waits and warms up")]
    NoWindow,
}

debug_with_message!(ProfileError: NoActivity, NoThread, Forked, NotReady, Lost, NoWindow);
