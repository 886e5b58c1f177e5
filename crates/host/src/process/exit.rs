//! The exit of the process: hooks that run in phases.
//!
//! Each module registers the [`Hook`] of what it has to finish. One exit handler runs all hooks, one phase after the other.
//! It can run twice: exit handlers run in the opposite order of their registration, and a library that is loaded later,
//! such as the CUDA driver, registers handlers that run before this one. [`run_before_registered_handlers`] registers the
//! handler again, so that the hooks find that library still working. Their second run finishes what the first one could not
//! know of.

use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use super::fork;

/// The phases of the exit, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Sessions end and deliver their last windows, which may need GPU times.
    Sessions,
    /// GPU times are read, loggers take and save what was logged, and the summary is written.
    Summary,
    /// Calls of the CUDA driver stop.
    Driver,
}

const PHASES: usize = 3;

/// Which run of the hooks it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The first run.
    First,
    /// A later run. It does not repeat the waits of the first run.
    Later,
}

/// The work of a module when the process exits.
///
/// Other threads may hold any lock at that time. A hook takes only locks of the profiler, and waits for a bounded time.
pub struct Hook {
    /// When it runs, among the hooks of other modules.
    pub phase: Phase,
    /// What runs.
    pub run: fn(Run),
}

/// The warning for a process in which no handler can be registered.
pub const NO_HANDLER: &str = "the system takes no more exit handlers: keep the guard of `init` to the end of `main` to \
     have the summary written";

/// The hooks by phase; null where there is none.
///
/// Hooks are stored with `Release` and loaded with `Acquire`, so that a hook sees what its module did before it registered
/// the hook. No lock is involved, which an exit or a fork could leave held.
static HOOKS: [AtomicPtr<Hook>; PHASES] = [const { AtomicPtr::new(ptr::null_mut()) }; PHASES];

/// Makes the process run `hook` when it exits. A phase has one hook; it is registered once however often this is called.
/// Returns `false` if the system takes no more exit handlers.
#[must_use]
pub fn register(hook: &'static Hook) -> bool {
    static HAS_HANDLER: AtomicBool = AtomicBool::new(false);

    HOOKS[hook.phase as usize].store(ptr::from_ref(hook).cast_mut(), Release);
    if HAS_HANDLER.swap(true, Relaxed) {
        return true;
    }
    let is_registered = add_handler();
    HAS_HANDLER.store(is_registered, Relaxed);
    is_registered
}

/// Makes the hooks run before all exit handlers that are registered so far. Returns `false` if the system takes no more
/// exit handlers.
#[must_use]
pub fn run_before_registered_handlers() -> bool {
    add_handler()
}

/// Returns `false`: a WebAssembly module without a system has no end that it is notified of.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn add_handler() -> bool {
    let _ = on_exit;
    false
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn add_handler() -> bool {
    // SAFETY: `on_exit` has the C ABI that `atexit` requires, and exists until the process ends. An `extern "C"` function
    // never unwinds into its caller.
    (unsafe { libc::atexit(on_exit) }) == 0
}

/// `true` once the hooks have run.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Runs the hooks of some phases, before a signal ends the process. The program's threads still run: calls of the driver are not
/// among them.
pub fn run_before_signal(phases: &[Phase]) {
    HAS_RUN.store(true, Relaxed);
    for phase in phases {
        run_hooks(&HOOKS[*phase as usize..][..1], Run::First);
    }
}

extern "C" fn on_exit() {
    // A forked process has none of the profiler's threads, and would wait for them forever.
    if !fork::is_own_process() {
        return;
    }
    let run = if HAS_RUN.swap(true, Relaxed) {
        Run::Later
    } else {
        Run::First
    };
    run_hooks(&HOOKS, run);
}

fn run_hooks(hooks: &[AtomicPtr<Hook>], run: Run) {
    for hook in hooks {
        // SAFETY: the pointer is null, or comes from a `&'static Hook`.
        if let Some(hook) = unsafe { hook.load(Acquire).as_ref() }
            && let Err(payload) = catch_unwind(|| (hook.run)(run))
        {
            // Nothing is left that could report the panic. The payload's destructor could panic again.
            std::mem::forget(payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static RUNS: Mutex<Vec<(Phase, Run)>> = Mutex::new(Vec::new());

    fn note(phase: Phase, run: Run) {
        RUNS.lock().unwrap().push((phase, run));
    }

    static SESSIONS: Hook = Hook {
        phase: Phase::Sessions,
        run: |run| note(Phase::Sessions, run),
    };
    static SUMMARY: Hook = Hook {
        phase: Phase::Summary,
        run: |_| std::panic::resume_unwind(Box::new("ends here")),
    };
    static DRIVER: Hook = Hook {
        phase: Phase::Driver,
        run: |run| note(Phase::Driver, run),
    };

    #[test]
    fn hooks_run_by_phase_and_a_panic_ends_one_of_them() {
        let hooks = [const { AtomicPtr::new(ptr::null_mut()) }; PHASES];
        // Not in the order of the phases.
        for hook in [&DRIVER, &SUMMARY, &SESSIONS] {
            hooks[hook.phase as usize].store(ptr::from_ref(hook).cast_mut(), Release);
        }
        run_hooks(&hooks, Run::First);
        run_hooks(&hooks, Run::Later);
        let runs = RUNS.lock().unwrap();
        let expected = [Run::First, Run::Later]
            .map(|run| [(Phase::Sessions, run), (Phase::Driver, run)])
            .concat();
        assert_eq!(*runs, expected);
    }

    #[test]
    fn each_phase_has_a_place_of_its_own() {
        let phases = [Phase::Sessions, Phase::Summary, Phase::Driver];
        let places: Vec<usize> = phases.iter().map(|phase| *phase as usize).collect();
        assert_eq!(places, (0..PHASES).collect::<Vec<_>>());
    }
}
