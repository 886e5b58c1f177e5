//! Signals belong to the program: the profiler's threads take none.

#[cfg(unix)]
pub(crate) use unix::{Mask, unblock};

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
}
