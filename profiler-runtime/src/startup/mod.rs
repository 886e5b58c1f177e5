//! Starting the profiler and closing it down: the modules that know all of its parts.
//!
//! [`ensure_started`] starts what the environment asks for. [`init`] and its guard do the same explicitly, with errors
//! and at a known time. `exit_hooks` does what the guard does for programs without one.

mod closing;
mod enabled;
#[cfg(feature = "trace")]
mod environment;
mod error;
mod exit_hooks;
mod exit_summary;
#[cfg(feature = "trace")]
mod external_control;
mod flush;
mod folders;
mod init;
#[cfg(feature = "trace")]
mod lost_scopes;
mod mistakes;
mod process_file;
mod summary_file;
mod summary_target;
mod summary_writer;
#[cfg(feature = "trace")]
mod trace_file;
mod written;

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use profiler_host::diagnostics;
use profiler_host::process;
use profiler_host::sync::{Lock, ReentrancyGuard};

use crate::config::SummaryTarget;
use crate::cuda::nvtx;
use crate::switch::{self, NEVER_MEASURES, with_control};
use crate::{clock, collect, cuda, local, scope, session};

pub use enabled::{is_enabled, pause, set_enabled};
pub use error::InitError;
pub use flush::{FlushReport, flush};
pub(crate) use init::warn_of_unused_guard;
pub use init::{Builder, ProfilerGuard, builder, init};

/// Starts the profiler on the first call in the process: the environment's default logger, the exit hooks, and the
/// environment's session.
///
/// Call sites call this before they decide, and so does every public function that turns measuring on or off or that
/// works on the environment's session. Sessions of the program register their own exit hook.
///
/// # Several threads, re-entrancy, forks
///
/// One thread starts the profiler; others that call this wait for the default logger and the exit hooks, which the lock
/// protects. `STARTED` is stored with `Release` and loaded with `Acquire`, so that a thread that skips the lock finds
/// them too. The session starts after that, with the lock released, because its handlers may call measured functions.
/// Another thread may decide before the session has started: starting it begins a new generation of the switch.
///
/// The environment is read before the lock is taken: warnings about it reach `tracing` subscribers, which may call back
/// into this function. Under the lock no user code runs, except a measured allocator; the [`ReentrancyGuard`] keeps that
/// from deciding for its own call site.
///
/// A child that was forked while another thread started the profiler finds `STARTED` unset, gets a new lock (see
/// [`Lock`]) and starts again. The second registration repeats the hooks, and adds a default logger whose
/// thread does not exist in the child. No child of a process that has the profiler's threads starts the session: nothing
/// would end it.
#[cold]
pub(crate) fn ensure_started() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    static STARTING: Lock<()> = Lock::new(());

    if NEVER_MEASURES || STARTED.load(Acquire) {
        // `strip` was chosen for the build; the target may have been chosen without the profiler in mind.
        if let Some(reason) = switch::WHY_NEVER.filter(|_| !cfg!(feature = "strip")) {
            diagnostics::warn_once(reason);
        }
        return;
    }
    let settings = with_control(|control| control.settings.clone());
    let has_exit_hooks = {
        let _reentrancy = ReentrancyGuard::try_enter();
        let _starting = STARTING.lock();
        if STARTED.load(Acquire) {
            return;
        }
        process::fork::set_home();
        scope::calibrate();
        if settings.thread_time {
            local::calibrate_thread_time();
        }
        collect::set_default_from(&settings);
        let has_exit_hooks = exit_hooks::register_all();
        switch::publish();
        STARTED.store(true, Release);
        has_exit_hooks
    };
    if !has_exit_hooks {
        diagnostics::warn_once(process::exit::NO_HANDLER);
    }
    folders::prepare();
    let session = &settings.session;
    if settings.summary != SummaryTarget::Off
        || settings.tensorboard.is_some()
        || session.trace.is_some()
    {
        switch::write_before_ending();
    }
    // With the lock released: the tool may take its time, and may call into CUDA.
    nvtx::attach(settings.nvtx);
    #[cfg(feature = "trace")]
    if process::fork::is_own_process() {
        begin_session(&settings.session);
    }
    summary_writer::begin();
    cuda::nvml::begin(None);
    if switch::is_enabled() {
        clock::warn_if_fallback();
    }
}

/// Starts the environment's session, or the thread that waits for the command to start it.
#[cfg(feature = "trace")]
fn begin_session(settings: &crate::config::SessionSettings) {
    if settings.trace.is_none() {
        return;
    }
    if settings.control.is_none() && settings.signal.is_none() {
        environment::start();
    } else {
        external_control::watch(settings.control.clone(), settings.signal);
    }
}

/// Ends a step of the session that the environment asked for (`PROFILER_TRACE`, `PROFILER_SCHEDULE`) and begins the next
/// one.
///
/// Does nothing if the environment asked for no session. [`step!`](crate::step!) does the same. Sessions that the program
/// starts have their own steps: [`Profile::step`](crate::Profile::step).
///
/// # Examples
///
/// ```
/// for _epoch in 0..3 {
///     // the training
///     profiler_runtime::step();
/// }
/// ```
pub fn step() {
    ensure_started();
    session::environment::step();
}
