//! The end of a thread, after the destructors of its thread-locals.

/// Schedules [`release`](super::release) to run on this thread after the destructors of its thread-locals. Returns
/// `false` if the system cannot do that.
///
/// Called by the destructor of a thread-local. Destructors of POSIX keys run after those of thread-locals. On systems
/// where the standard library implements thread-local destructors with such a key, a key that is set during one round
/// of destructors has its own destructor called in the next round.
///
/// When the process exits, the keys' destructors do not run for the thread that called `exit`. Its cells stay where they
/// are, and summaries read them there.
#[cfg(unix)]
pub(super) fn schedule_release() -> bool {
    keys::key().is_some_and(keys::set)
}

#[cfg(not(unix))]
pub(super) fn schedule_release() -> bool {
    false
}

#[cfg(unix)]
mod keys {
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// The value of a key that is set. A key whose value is null has no destructor called.
    const SET: NonNull<c_void> = NonNull::dangling();

    /// The process's key + 1; 0 before it is created.
    ///
    /// Relaxed ordering suffices: the number is all that threads exchange. A thread that reads it late creates a second
    /// key, loses the exchange and deletes its own.
    static KEY: AtomicU64 = AtomicU64::new(0);

    extern "C" fn on_thread_end(_value: *mut c_void) {
        super::super::release();
    }

    /// Returns the process's key, or `None` if the system has no more keys.
    // Lock-free: in a forked child, a thread that does not exist there could hold the lock forever.
    pub(super) fn key() -> Option<libc::pthread_key_t> {
        if let Some(key) = decode(KEY.load(Relaxed)) {
            return Some(key);
        }
        let mut created: libc::pthread_key_t = 0;
        // SAFETY: the key is written to a local variable; `on_thread_end` accepts any value of the key.
        if unsafe { libc::pthread_key_create(&raw mut created, Some(on_thread_end)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, u64::from(created) + 1, Relaxed, Relaxed) {
            Ok(_) => Some(created),
            Err(other) => {
                // SAFETY: the key was created above, and no thread has set it.
                unsafe { libc::pthread_key_delete(created) };
                decode(other)
            }
        }
    }

    fn decode(stored: u64) -> Option<libc::pthread_key_t> {
        libc::pthread_key_t::try_from(stored.checked_sub(1)?).ok()
    }

    /// Sets the key on this thread. Returns `false` if there is no memory for that.
    pub(super) fn set(key: libc::pthread_key_t) -> bool {
        // SAFETY: the key exists and is never deleted; nothing reads through the value.
        unsafe { libc::pthread_setspecific(key, SET.as_ptr()) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use std::collections::BTreeSet;

        use super::*;

        #[test]
        fn all_threads_find_one_key() {
            let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(key)).collect();
            let keys: BTreeSet<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
            assert_eq!(keys.len(), 1);
            assert!(keys.iter().all(Option::is_some));
        }
    }
}
