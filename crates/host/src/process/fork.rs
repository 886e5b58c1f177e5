//! Forks: how a process finds out that it is a forked child.
//!
//! `fork` copies the memory of the process, but only the calling thread. In the child, a lock that another thread held
//! stays locked forever, its data may be half changed, and the profiler's threads do not exist. Code that depends on
//! this compares [`generation`]s or calls [`is_child`].

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use super::platform;

/// The number of forks between the process in which [`watch`] was first called and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// The generation of the process that runs the profiler's threads, or [`NO_HOME`].
static HOME: AtomicU32 = AtomicU32::new(NO_HOME);
const NO_HOME: u32 = u32::MAX;
/// The id of the process that runs the profiler's threads, or 0.
static HOME_PID: AtomicU32 = AtomicU32::new(0);
/// `true` once the fork handler is registered.
static IS_WATCHING: AtomicBool = AtomicBool::new(false);

/// Returns the number of forks since the profiler was first used: 0 in the process where that was.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Makes this process the home of the profiler's threads, unless there is one.
pub fn set_home() {
    let id = platform::process_id();
    if HOME_PID.compare_exchange(0, id, Relaxed, Relaxed).is_ok() {
        watch();
        HOME.store(generation(), Relaxed);
    }
}

/// Returns `true` unless this process was forked from the home process. Compares process ids, and so also recognises a
/// child that was made by a raw system call, for which no fork handler runs.
pub fn is_own_process() -> bool {
    let home = HOME_PID.load(Relaxed);
    home == 0 || home == platform::process_id()
}

/// Returns `true` if this process was forked from the home process: it has a copy of all counts, and none of the
/// profiler's threads.
#[inline]
pub fn is_child() -> bool {
    let home = HOME.load(Relaxed);
    home != NO_HOME && home != generation()
}

/// Starts to count forks, if that was not done before.
///
/// Every lock calls this before it is taken, so a lock that is held at a fork was taken after the registration.
#[inline]
pub fn watch() {
    if !IS_WATCHING.load(Relaxed) {
        register();
    }
}

#[cold]
fn register() {
    // Threads that get here at once each register the handler: to wait for the other one would be one more wait that a
    // fork can make endless. A child then counts several generations, which is as good as one.
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Relaxed);
    }
    // SAFETY: the handler changes one atomic and does not unwind. If it is not registered, forks go unnoticed, as on a
    // system without forks.
    unsafe { run_in_children(in_child) };
    IS_WATCHING.store(true, Relaxed);
}

/// Makes `handler` run in each process that is forked from this one. Does nothing if the system takes no more handlers.
///
/// # Safety
///
/// The handler must be async-signal-safe, as is required in the child of a multi-threaded process, and must not unwind.
#[cfg(all(unix, not(miri)))]
pub unsafe fn run_in_children(handler: unsafe extern "C" fn()) {
    // SAFETY: the handler is a function of this program. The caller promises the rest.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Does nothing: there are no forks.
///
/// # Safety
///
/// Always safe: `unsafe` as on systems with forks.
#[cfg(not(all(unix, not(miri))))]
pub unsafe fn run_in_children(_handler: unsafe extern "C" fn()) {}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use crate::process::fork_and;

    #[test]
    fn a_child_is_of_another_generation_than_its_parent() {
        watch();
        let before = generation();
        fork_and(|| {
            let child = generation();
            child > before
        });
        assert_eq!(generation(), before);
    }
}
