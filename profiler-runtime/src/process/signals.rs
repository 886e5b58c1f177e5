//! Signals belong to the program: the profiler's threads take none, and its writes raise none.

#[cfg(unix)]
pub(crate) use unix::{Mask, protect_write, unblock};

#[cfg(unix)]
mod unix {
    use std::marker::PhantomData;
    use std::mem::MaybeUninit;
    use std::ptr;

    use libc::{c_int, sigset_t};

    /// Raised by an instruction of the thread itself. They stay deliverable: a logger or a handler that faults on a
    /// thread of the profiler must meet the program's own handler (a crash reporter, a language runtime), which a
    /// blocked fault does not; the kernel ends the process instead.
    const FAULTS: [c_int; 6] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];

    /// Raised by `write`, on the thread that called it: at the limit of a file's size, and in a pipe or socket without
    /// a reader.
    const OF_WRITES: [c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

    fn empty() -> sigset_t {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` writes the whole set, and cannot fail for an address that is there.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        }
    }

    fn set_of(signals: &[c_int]) -> sigset_t {
        let mut set = empty();
        for signal in signals {
            // SAFETY: the set is initialised; a number that is no signal's is refused.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        set
    }

    fn all_but_faults() -> sigset_t {
        let mut set = empty();
        // SAFETY: the set is initialised. The C library leaves out the signals that it needs for itself.
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

    /// The signals that are blocked and waiting, for this thread or for the process.
    fn pending() -> sigset_t {
        let mut set = empty();
        // SAFETY: the set is there to be written; where the call fails, it stays empty.
        unsafe { libc::sigpending(&raw mut set) };
        set
    }

    /// Puts the calling thread's mask back when it is dropped.
    pub(crate) struct Mask {
        before: Option<sigset_t>,
        /// A mask is one thread's.
        _not_send: PhantomData<*const ()>,
    }

    impl Mask {
        /// Blocks every signal but faults on the calling thread. Threads that it starts meanwhile inherit the mask, so
        /// that there is no moment at which they could take a signal.
        pub(crate) fn block_all() -> Self {
            Self::block(&all_but_faults())
        }

        fn block(set: &sigset_t) -> Self {
            let mut before = empty();
            // SAFETY: both sets are initialised and live longer than the call.
            let result = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, ptr::from_ref(set), &raw mut before)
            };
            Self {
                before: (result == 0).then_some(before),
                _not_send: PhantomData,
            }
        }
    }

    impl Drop for Mask {
        fn drop(&mut self) {
            if let Some(before) = &self.before {
                // SAFETY: the set is one that the system gave for this thread.
                unsafe {
                    libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(before), ptr::null_mut())
                };
            }
        }
    }

    /// Has the calling thread, one of the profiler's, take a signal that the profiler was told to take.
    pub(crate) fn unblock(signal: c_int) {
        let set = set_of(&[signal]);
        // SAFETY: the set is initialised and lives longer than the call.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut()) };
    }

    /// Runs `write`, and keeps the signals that it raises from the program; it fails with the error alone.
    ///
    /// Both signals are sent to the thread that writes. They are blocked here, and what is pending afterwards and was
    /// not before is taken off the queue. One that was pending before is the program's, and stays.
    pub(crate) fn protect_write<T>(write: impl FnOnce() -> T) -> T {
        let mask = Mask::block(&set_of(&OF_WRITES));
        if mask.before.is_none() {
            return write();
        }
        let consume = Consume { before: pending() };
        let result = write();
        // Before the mask: unblocked, it would be delivered.
        drop(consume);
        drop(mask);
        result
    }

    /// Takes what was raised meanwhile off the queue; also where `write` panics, before the mask goes.
    struct Consume {
        before: sigset_t,
    }

    impl Drop for Consume {
        fn drop(&mut self) {
            let after = pending();
            for signal in OF_WRITES {
                if contains(&after, signal) && !contains(&self.before, signal) {
                    take(signal);
                }
            }
        }
    }

    /// Takes a pending signal off the queue, without waiting for one.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    fn take(signal: c_int) {
        let set = set_of(&[signal]);
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the set and the time are initialised and live longer than the call; nothing is written.
        unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const at_once) };
    }

    /// The same where the system has no `sigtimedwait`: `sigwait` returns at once, as the signal is pending for this
    /// thread and no other one can take it.
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    fn take(signal: c_int) {
        let set = set_of(&[signal]);
        let mut taken = 0;
        // SAFETY: the set is initialised, the number there to be written.
        unsafe { libc::sigwait(&raw const set, &raw mut taken) };
    }

    #[cfg(test)]
    mod tests {
        use std::io::{self, Write};
        use std::panic::{AssertUnwindSafe, catch_unwind};

        use super::*;

        fn broken_pipe() -> io::PipeWriter {
            io::pipe().expect("a pipe").1
        }

        fn is_pending(signal: c_int) -> bool {
            contains(&pending(), signal)
        }

        /// Blocked, a signal is queued even where its action is to be ignored, as it is in a test.
        #[test]
        fn what_a_write_raises_is_taken_off_the_queue() {
            let _mask = Mask::block(&set_of(&OF_WRITES));
            let error = broken_pipe().write(b"lost").expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            assert!(is_pending(libc::SIGPIPE), "by a write without protection");
            take(libc::SIGPIPE);

            let mut pipe = broken_pipe();
            let error = protect_write(|| pipe.write(b"lost")).expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            assert!(!is_pending(libc::SIGPIPE));
        }

        #[test]
        fn what_was_pending_before_is_the_programs() {
            let _mask = Mask::block(&set_of(&OF_WRITES));
            // SAFETY: a signal that is blocked on this thread, which is the one it is sent to.
            assert_eq!(unsafe { libc::raise(libc::SIGPIPE) }, 0);
            let mut pipe = broken_pipe();
            assert!(protect_write(|| pipe.write(b"lost")).is_err());
            assert!(is_pending(libc::SIGPIPE));
            take(libc::SIGPIPE);
            assert!(!is_pending(libc::SIGPIPE));
        }

        #[test]
        fn the_mask_is_put_back_even_by_a_panic() {
            let blocked = || {
                let mut set = empty();
                // SAFETY: the set is there to be written; no mask is changed.
                unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
                OF_WRITES.map(|signal| contains(&set, signal))
            };
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
}

/// Other systems have no such signals.
#[cfg(not(unix))]
pub(crate) fn protect_write<T>(write: impl FnOnce() -> T) -> T {
    write()
}
