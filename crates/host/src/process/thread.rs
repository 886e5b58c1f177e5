//! Threads: starting the profiler's own, and what the system knows of the calling one.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, Thread};

/// Returns a number that no other thread of the process has or will have. Does not allocate.
pub fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// Starts a thread that receives no signals: those of the process are for the program's threads.
///
/// A new thread inherits the signal mask of the thread that starts it. So the mask is set here, around the start, and
/// there is no moment at which the new thread could receive a signal. Code of the program that runs on such a thread (a
/// logger, a handler) runs with signals blocked too, and so do the threads and processes that it starts.
///
/// # Errors
///
/// Returns the system's error if it starts no thread.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    super::fork::set_home();
    let _mask = super::signals::SignalMask::block_all();
    let handle = thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(handle.thread().clone())
}

/// Returns the number that the system, and other tools, know the calling thread by.
#[cfg(target_os = "linux")]
pub fn system_id() -> Option<u64> {
    // SAFETY: the call takes nothing and cannot fail.
    u64::try_from(unsafe { libc::gettid() }).ok()
}

/// Returns `None`: on other systems, traces number the threads themselves.
#[cfg(not(target_os = "linux"))]
pub fn system_id() -> Option<u64> {
    None
}

/// Returns the name of the calling thread as the system knows it, at most 15 bytes of it: code that is not Rust names its
/// threads too.
#[cfg(target_os = "linux")]
pub fn name() -> Option<String> {
    let name = system_name();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns `true` if the system knows the calling thread by a name that begins so. Does not allocate, on no thread.
#[cfg(target_os = "linux")]
pub fn has_name(beginning: &str) -> bool {
    system_name().starts_with(beginning.as_bytes())
}

/// Returns `false`: on other systems, names are not read without allocating.
#[cfg(not(target_os = "linux"))]
pub fn has_name(_beginning: &str) -> bool {
    false
}

/// Returns the name of the calling thread, and zeros after it.
#[cfg(target_os = "linux")]
fn system_name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: the call writes at most 16 bytes, the last of them zero.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Returns the name of the calling thread, if Rust started it with one.
#[cfg(not(target_os = "linux"))]
pub fn name() -> Option<String> {
    thread::current().name().map(str::to_owned)
}

/// Returns the processor time of the calling thread in nanoseconds, or 0 if the system does not report it.
#[cfg(unix)]
pub fn processor_time() -> u64 {
    super::processor_time::read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// Returns the processor time of the calling thread in nanoseconds, or 0 if the system does not report it. The system
/// counts it in ticks of its scheduler, some milliseconds each.
#[cfg(windows)]
pub fn processor_time() -> u64 {
    use std::ffi::c_void;

    /// `FILETIME`: units of 100 ns, in two halves.
    #[derive(Default)]
    #[repr(C)]
    struct FileTime {
        low: u32,
        high: u32,
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetCurrentThread() -> *mut c_void;
        fn GetThreadTimes(
            thread: *mut c_void,
            creation: *mut FileTime,
            exit: *mut FileTime,
            kernel: *mut FileTime,
            user: *mut FileTime,
        ) -> i32;
    }

    let mut times: [FileTime; 4] = Default::default();
    let [creation, exit, kernel, user] = &mut times;
    // SAFETY: the handle of the calling thread is always valid and need not be closed, and each pointer is valid for
    // writes of a `FILETIME`.
    let done = unsafe { GetThreadTimes(GetCurrentThread(), creation, exit, kernel, user) } != 0;
    let nanoseconds = |time: &FileTime| 100 * (u64::from(time.high) << 32 | u64::from(time.low));
    if done {
        nanoseconds(kernel) + nanoseconds(user)
    } else {
        0
    }
}

/// Returns 0: a target without threads has no background threads whose time would be wanted.
#[cfg(not(any(unix, windows)))]
pub fn processor_time() -> u64 {
    0
}

#[cfg(all(test, any(unix, windows), not(miri)))]
mod processor_time_tests {
    use std::time::{Duration, Instant};

    use super::processor_time;

    #[test]
    fn the_processor_time_grows_while_the_thread_works() {
        let before = processor_time();
        let start = Instant::now();
        // Long enough for a coarse clock, on a machine that runs other programs too.
        while processor_time() == before && start.elapsed() < Duration::from_secs(60) {}
        assert!(processor_time() > before);
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_receives_no_signal_but_faults() {
        use crate::process::signals::is_blocked;

        let (sender, receiver) = channel();
        let started = spawn("signals", move || {
            let _ = sender.send([libc::SIGUSR1, libc::SIGTERM, libc::SIGSEGV].map(is_blocked));
        });
        assert_eq!(started.expect("a thread").name(), Some("signals"));
        assert_eq!(receiver.recv(), Ok([true, true, false]));
        assert!(
            !is_blocked(libc::SIGUSR1),
            "the starting thread's mask is restored"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_known_by_the_beginning_of_its_name() {
        let thread = thread::Builder::new().name("DSD-0-1".to_owned());
        let known = thread.spawn(|| ["DSD-", "DSD-0-1", "DSU-", "SD-"].map(has_name));
        let known = known.expect("a thread").join().expect("no panic");
        assert_eq!(known, [true, true, false, false]);
    }
}
