//! The processor time of the process.

/// Returns for how long all threads of the process have run on a processor since it was started, in nanoseconds. Returns
/// `None` if the system does not say, and in a forked child, whose measurements have begun before it.
#[cfg(unix)]
pub fn processor_time() -> Option<u64> {
    if super::fork::generation() != 0 {
        return None;
    }
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the time of one of the system's clocks in nanoseconds, or `None` if the system does not have it.
#[cfg(unix)]
#[inline]
pub fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a `timespec` that lives through the call, which writes nothing else.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Returns `None`: only Unix systems are asked.
#[cfg(not(unix))]
pub fn processor_time() -> Option<u64> {
    None
}

// Miri does not know this clock.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_has_that_of_threads_that_have_ended() {
        let before = processor_time().expect("Unix systems have this clock");
        let work = || {
            let of_thread = || read(libc::CLOCK_THREAD_CPUTIME_ID).expect("as before");
            let start = of_thread();
            while of_thread() - start < 20_000_000 {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(work).join().expect("it ends");
        let used = processor_time().expect("as before") - before;
        assert!(used >= 19_000_000, "{used}");
    }
}
