//! Forks: how a process finds out that it is a child.
//!
//! `fork` copies the memory of all threads and one thread. A lock that another thread held at that moment stays held
//! in the child for ever, and what it protects may be half changed. Everything that depends on this asks for the
//! [`generation`].

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Forks between the process in which [`watch`] was first called and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// The generation of the process that the profiler was set up in; [`NOWHERE`] before it was.
static HOME: AtomicU32 = AtomicU32::new(NOWHERE);
const NOWHERE: u32 = u32::MAX;
/// Whether the handler is registered.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Returns the number of forks since the profiler was first used: zero in the process where that was.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// The number of the process that the profiler was set up in; zero before it was.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Makes this process the one that has the profiler's threads, unless one is already.
pub(crate) fn settle() {
    let id = std::process::id();
    if PROCESS.compare_exchange(0, id, Relaxed, Relaxed).is_ok() {
        watch();
        HOME.store(generation(), Relaxed);
    }
}

/// Returns `true` unless this process was forked from the one that the profiler was set up in. It compares process
/// numbers, so that it also knows a child that a raw system call made.
pub(crate) fn is_own_process() -> bool {
    let process = PROCESS.load(Relaxed);
    process == 0 || process == std::process::id()
}

/// Returns whether this process was forked from the one that the profiler was set up in: it has all counts and none of
/// the threads.
#[inline]
pub(crate) fn is_child() -> bool {
    let home = HOME.load(Relaxed);
    home != NOWHERE && home != generation()
}

/// Has forks from now on counted.
///
/// Called before each lock is taken: a lock that is held at a fork was taken after the handler was registered.
#[inline]
pub(crate) fn watch() {
    if !WATCHED.load(Relaxed) {
        register();
    }
}

#[cold]
fn register() {
    // Threads that come here at once each register the handler: waiting for the other one's registration would be
    // one more wait that a fork can make endless. A child then counts several generations, which is as good as one.
    #[cfg(all(unix, not(miri)))]
    {
        extern "C" fn in_child() {
            GENERATION.fetch_add(1, Relaxed);
        }
        // SAFETY: the handler is a function of this program that does not unwind, and is safe in the child of a
        // process with several threads: it changes one atomic number. Where the system takes no more handlers, forks
        // go unnoticed, as on a system without forks.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    WATCHED.store(true, Relaxed);
}

#[cfg(all(test, unix, not(miri)))]
pub(crate) mod tests {
    use super::*;

    /// Runs `in_child` in a forked process; panics unless it returns true within a minute.
    #[track_caller]
    pub(crate) fn fork_and(in_child: impl FnOnce() -> bool) {
        // SAFETY: the child runs the closure and ends without returning to the test harness, whose locks other
        // threads may hold.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: ends the child at once. The watchdog kills one that hangs.
            unsafe {
                libc::alarm(60);
                libc::_exit(i32::from(!in_child()));
            }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status is there to be written.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        assert_eq!(status, 0, "the child failed, or hung until its alarm");
    }

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
