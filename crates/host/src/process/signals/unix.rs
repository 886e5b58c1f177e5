//! Signals of Unix systems.

#[cfg(any(test, feature = "signals"))]
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
#[cfg(feature = "signals")]
use std::sync::Arc;
#[cfg(feature = "signals")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{c_int, sigset_t};

/// Signals that an instruction of the thread itself raises. They are never blocked: a logger that faults on a thread
/// of the profiler must reach the program's handler (a crash reporter, a language runtime). If such a signal is
/// blocked, the kernel kills the process instead.
const FAULTS: [c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Signals that `write` sends to its thread: at the limit of a file's size, and for a pipe or socket without a reader.
const WRITE_SIGNALS: [c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

fn empty() -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the whole set, and cannot fail for a valid address.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn set_of(signals: &[c_int]) -> sigset_t {
    let mut set = empty();
    for signal in signals {
        // SAFETY: the set is initialised. The call rejects a number that is not a signal.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

fn all_but_faults() -> sigset_t {
    let mut set = empty();
    // SAFETY: the set is initialised. The C library leaves out the signals that it uses itself.
    unsafe {
        libc::sigfillset(&raw mut set);
        for signal in FAULTS {
            libc::sigdelset(&raw mut set, signal);
        }
    }
    set
}

fn contains(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(ptr::from_ref(set), signal) == 1 }
}

/// Returns the signals that are blocked and pending, for this thread or for the process.
fn pending() -> sigset_t {
    let mut set = empty();
    // SAFETY: the set is valid for writes. If the call fails, it stays empty.
    unsafe { libc::sigpending(&raw mut set) };
    set
}

/// Restores the signal mask of the calling thread when it is dropped.
pub struct SignalMask {
    before: Option<sigset_t>,
    /// A mask belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl SignalMask {
    /// Blocks all signals except faults on the calling thread. Threads that it starts inherit the mask.
    pub fn block_all() -> Self {
        Self::block(&all_but_faults())
    }

    fn block(set: &sigset_t) -> Self {
        let mut before = empty();
        // SAFETY: both sets are initialised and live longer than the call.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::from_ref(set), &raw mut before) };
        Self {
            before: (result == 0).then_some(before),
            _not_send: PhantomData,
        }
    }
}

impl Drop for SignalMask {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the set was returned by the system for this thread.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(before), ptr::null_mut())
            };
        }
    }
}

/// Parses the name of a signal that programs may use freely.
pub fn parse(text: &str) -> Option<c_int> {
    let text = text.trim().to_ascii_uppercase();
    match text.strip_prefix("SIG").unwrap_or(&text) {
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        "HUP" => Some(libc::SIGHUP),
        _ => None,
    }
}

/// Sets `flag` each time the process receives the signal. Relaxed ordering suffices: the flag carries no other data.
///
/// # Errors
///
/// Returns the system's error if the signal cannot be caught.
#[cfg(feature = "signals")]
pub fn set_flag_on(signal: c_int, flag: &Arc<AtomicBool>) -> io::Result<()> {
    let flag = Arc::clone(flag);
    // SAFETY: the action may run in a signal handler: it stores to an atomic, which allocates, locks and panics nowhere.
    // Nothing removes it, so `flag` is not dropped there either.
    unsafe { signal_hook_registry::register(signal, move || flag.store(true, Relaxed)) }.map(drop)
}

/// Unblocks a signal on the calling thread: one that the program has assigned to the profiler.
pub fn unblock(signal: c_int) {
    let set = set_of(&[signal]);
    // SAFETY: the set is initialised and lives longer than the call.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
}

/// Calls `write`, and discards the signals that it raises: a failed write only returns its error.
///
/// The kernel sends these signals to the writing thread. This function blocks them there, and afterwards takes the
/// ones off the queue that were not pending before. One that was pending before belongs to the program, and stays.
pub fn protect_write<T>(write: impl FnOnce() -> T) -> T {
    let mask = SignalMask::block(&set_of(&WRITE_SIGNALS));
    if mask.before.is_none() {
        return write();
    }
    let discard = DiscardRaised { before: pending() };
    let result = write();
    // Before the mask is restored, which would deliver the signal.
    drop(discard);
    drop(mask);
    result
}

/// Takes the signals off the queue that were raised since `before`. A destructor, so that this also happens if `write`
/// panics.
struct DiscardRaised {
    before: sigset_t,
}

impl Drop for DiscardRaised {
    fn drop(&mut self) {
        let after = pending();
        for signal in WRITE_SIGNALS {
            if contains(&after, signal) && !contains(&self.before, signal) {
                take(signal);
            }
        }
    }
}

/// Takes a pending signal off the queue.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn take(signal: c_int) {
    let set = set_of(&[signal]);
    let no_wait = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the set and the time are initialised and live longer than the call; nothing is written.
    unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const no_wait) };
}

/// Takes a pending signal off the queue. This system has no `sigtimedwait`, but `sigwait` does not wait either: the
/// signal is pending for this thread, and no other thread can take it.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn take(signal: c_int) {
    let set = set_of(&[signal]);
    let mut taken = 0;
    // SAFETY: the set is initialised, and `taken` is valid for writes.
    unsafe { libc::sigwait(&raw const set, &raw mut taken) };
}

/// Returns `true` if the calling thread blocks a signal.
#[cfg(all(test, not(miri)))]
pub fn is_blocked(signal: c_int) -> bool {
    let mut set = empty();
    // SAFETY: the set is valid for writes; no mask is changed.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    contains(&set, signal)
}

#[cfg(test)]
mod parse_tests {
    #[test]
    fn signals_are_known_with_and_without_their_prefix() {
        assert_eq!(super::parse("SIGUSR1"), Some(libc::SIGUSR1));
        assert_eq!(super::parse("usr2"), Some(libc::SIGUSR2));
        assert_eq!(super::parse("KILL"), None);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::Write;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn broken_pipe() -> io::PipeWriter {
        io::pipe().expect("a pipe").1
    }

    fn is_pending(signal: c_int) -> bool {
        contains(&pending(), signal)
    }

    // A blocked signal is queued even if its action is to ignore it, as it is in a test.
    #[test]
    fn a_signal_that_a_write_raises_is_discarded() {
        let _mask = SignalMask::block(&set_of(&WRITE_SIGNALS));
        let error = broken_pipe()
            .write(b"lost")
            .expect_err("there is no reader");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(is_pending(libc::SIGPIPE), "by a write without protection");
        take(libc::SIGPIPE);

        let mut pipe = broken_pipe();
        let error = protect_write(|| pipe.write(b"lost")).expect_err("there is no reader");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(!is_pending(libc::SIGPIPE));
    }

    #[test]
    fn a_signal_that_was_pending_before_stays() {
        let _mask = SignalMask::block(&set_of(&WRITE_SIGNALS));
        // SAFETY: a signal that is blocked on this thread, which is the one it is sent to.
        assert_eq!(unsafe { libc::raise(libc::SIGPIPE) }, 0);
        let mut pipe = broken_pipe();
        assert!(protect_write(|| pipe.write(b"lost")).is_err());
        assert!(is_pending(libc::SIGPIPE));
        take(libc::SIGPIPE);
        assert!(!is_pending(libc::SIGPIPE));
    }

    #[test]
    fn a_panic_restores_the_mask() {
        let blocked = || WRITE_SIGNALS.map(is_blocked);
        assert_eq!(blocked(), [false, false]);
        let mut pipe = broken_pipe();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            protect_write(|| {
                assert_eq!(blocked(), [true, true]);
                let _ = pipe.write(b"lost");
                panic!("as asked")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(blocked(), [false, false]);
        assert!(!is_pending(libc::SIGPIPE));
    }
}
