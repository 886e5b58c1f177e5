//! Finishing sessions at the end of the program.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use profiler_host::diagnostics;
use profiler_host::process::exit::{self, Hook, Phase};
use profiler_host::process::fork;
use profiler_host::process::platform::Instant;
use profiler_host::sync::{Lock, Locked};

use super::live::Session;
use super::{environment, window_sorter};
use crate::switch;

/// How long the end of the program waits for the environment's session, whose handlers write files that the user asked
/// for.
const WRITING: Duration = Duration::from_secs(30);

/// How long an exiting process waits for handlers.
const AT_EXIT: Duration = Duration::from_secs(2);

/// All sessions that are still in use.
static SESSIONS: Lock<Vec<Weak<Session>>> = Lock::new(Vec::new());

fn sessions() -> Locked<'static, Vec<Weak<Session>>> {
    SESSIONS.lock()
}

static HOOK: Hook = Hook {
    phase: Phase::Sessions,
    run: |_| finish_at_exit(),
};

/// Remembers a session until it is dropped, and registers the exit hook: a program may have a session and no measured
/// call, which would start the rest of the profiler.
pub(super) fn remember(session: &Arc<Session>) {
    if !exit::register(&HOOK) {
        diagnostics::warn_once(
            "the system takes no more exit handlers: call `Profile::stop` and `Profile::wait` before the program ends",
        );
    }
    switch::write_before_ending();
    let mut sessions = sessions();
    sessions.retain(|known| known.strong_count() > 0);
    sessions.push(Arc::downgrade(session));
}

/// Finishes all sessions in the first run of the exit hooks. A second run would wait again for a handler that does not
/// return.
fn finish_at_exit() {
    static FINISHED: AtomicBool = AtomicBool::new(false);
    if !FINISHED.swap(true, Relaxed) {
        finish(AT_EXIT, FinishMode::All);
    }
}

/// Which sessions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishMode {
    /// The environment's session. Sessions of the program have guards that may still end them.
    Environment,
    /// All sessions: no guard is dropped after an exit handler has run.
    All,
}

/// Ends sessions, and waits until their handlers have returned for every closed window. Called at the end of the
/// program.
pub(crate) fn finish(timeout: Duration, ending: FinishMode) {
    // A forked process has none of the profiler's threads.
    if !fork::is_own_process() {
        return;
    }
    environment::stop();
    let start = Instant::now();
    let known: Vec<Arc<Session>> = sessions().iter().filter_map(Weak::upgrade).collect();
    if ending == FinishMode::All {
        for session in &known {
            session.stop();
        }
    }
    let rest = |of: Duration| of.saturating_sub(start.elapsed());
    let wait = |until: Duration| known.iter().all(|session| session.wait(rest(until)));
    // After half of the time, stop waiting for GPU times: a device that does not answer must not keep the rest from
    // being written.
    if wait(timeout / 2) {
        return;
    }
    window_sorter::skip_unread(true);
    let _ = wait(timeout);
    let mut own = known.iter().filter(|session| session.is_environment);
    let _ = own.all(|session| session.wait(rest(WRITING)));
    window_sorter::skip_unread(false);
    let left: u64 = known.iter().map(|session| session.delivery.left()).sum();
    if left > 0 {
        diagnostics::warn_once(&format!(
            "the profiler is closing, and {left} windows have not gone through their handlers: they may be lost; \
             call `Profile::wait` before the program ends"
        ));
    }
}
