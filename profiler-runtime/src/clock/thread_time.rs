//! The CPU time of a thread.

/// Returns for how long the calling thread has run on a processor, in nanoseconds. Returns `None` if the system does
/// not say.
#[cfg(unix)]
pub(crate) fn thread_time() -> Option<u64> {
    profiler_host::process::processor_time::read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns `None`: only Unix systems are asked.
#[cfg(not(unix))]
pub(crate) fn thread_time() -> Option<u64> {
    None
}

// Miri does not know this clock.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_thread_time_and_sleep_takes_nearly_none() {
        let before = thread_time().expect("Unix systems have this clock");
        let wall = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(40));
        let slept = thread_time().expect("as before") - before;
        assert!(u128::from(slept) < wall.elapsed().as_nanos() / 2, "{slept}");
        while thread_time().expect("as before") - before < 1_000_000 {
            std::hint::spin_loop();
        }
    }
}
