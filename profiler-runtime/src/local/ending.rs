//! The very end of a thread: after the destructors of its thread-locals.

/// Has the thread's block released after the destructors of all thread-locals, of which one calls this; false where
/// that is not to be had.
///
/// The destructors of a thread's POSIX keys run after those of thread-locals; where the standard library makes the
/// ones of the other, a key that is set meanwhile has its destructor called in the next round. In `main` they do not run
/// when the process exits: the cells stay as they are, which summaries read.
#[cfg(unix)]
pub(super) fn release_after_destructors() -> bool {
    keys::key().is_some_and(keys::set)
}

#[cfg(not(unix))]
pub(super) fn release_after_destructors() -> bool {
    false
}

#[cfg(unix)]
mod keys {
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Not zero, by which a key has no destructor to call.
    const SET: NonNull<c_void> = NonNull::dangling();

    /// The key, and one; zero before it is made.
    static KEY: AtomicU64 = AtomicU64::new(0);

    extern "C" fn released(_set: *mut c_void) {
        super::super::release();
    }

    /// Returns the process's key; none where the system has no more.
    // Without a lock: in a forked process another thread may hold it for ever.
    pub(super) fn key() -> Option<libc::pthread_key_t> {
        if let Some(known) = known(KEY.load(Relaxed)) {
            return Some(known);
        }
        let mut made: libc::pthread_key_t = 0;
        // SAFETY: the key is written to a place of ours; `released` takes what any key holds.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(released)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, u64::from(made) + 1, Relaxed, Relaxed) {
            Ok(_) => Some(made),
            Err(other) => {
                // SAFETY: made above, and no thread has set it.
                unsafe { libc::pthread_key_delete(made) };
                known(other)
            }
        }
    }

    fn known(stored: u64) -> Option<libc::pthread_key_t> {
        libc::pthread_key_t::try_from(stored.checked_sub(1)?).ok()
    }

    /// Sets the key on this thread; false where there is no memory for that.
    pub(super) fn set(key: libc::pthread_key_t) -> bool {
        // SAFETY: the key was made and is never deleted; what is set is never read through.
        unsafe { libc::pthread_setspecific(key, SET.as_ptr()) == 0 }
    }
}
