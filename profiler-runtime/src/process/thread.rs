//! Starting the profiler's threads.

use std::io;
use std::thread::{self, Thread};

/// Starts a thread that receives no signals: those of the process are for the program's threads.
///
/// A new thread inherits the signal mask of the thread that starts it. So the mask is set here, around the start, and
/// there is no moment at which the new thread could receive a signal. Code of the program that runs on such a thread (a
/// logger, a handler) runs with signals blocked too, and so do the threads and processes that it starts.
///
/// # Errors
///
/// Returns the system's error if it starts no thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    super::fork::set_home();
    #[cfg(unix)]
    let _mask = super::signals::SignalMask::block_all();
    let handle = thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(handle.thread().clone())
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
}
