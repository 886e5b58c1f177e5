//! The processor time of the process.

/// Returns for how long all threads of the process have run on a processor since it was started, in nanoseconds. Returns
/// `None` if the system does not say, and in a forked child, whose measurements have begun before it.
#[cfg(unix)]
pub(crate) fn processor_time() -> Option<f64> {
    if super::fork::generation() != 0 {
        return None;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a `timespec` that lives through the call, which writes nothing else.
    let refused =
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) } != 0;
    (!refused).then_some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64)
}

/// Returns `None`: only Unix systems are asked.
#[cfg(not(unix))]
pub(crate) fn processor_time() -> Option<f64> {
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
            let start = crate::process::thread::processor_time();
            while crate::process::thread::processor_time() - start < 20_000_000 {
                std::hint::spin_loop();
            }
        };
        std::thread::spawn(work).join().expect("it ends");
        let used = processor_time().expect("as before") - before;
        assert!(used >= 19e6, "{used}");
    }
}
