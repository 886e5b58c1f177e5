//! Starting a thread of the profiler's own.

use std::io;
use std::thread::{self, Thread};

/// Starts a thread that takes no signals: those of the process are for the program's threads.
///
/// The mask is the calling thread's while it starts the other one, which inherits it; so no signal is delivered to the
/// new thread before it could block them. What the thread runs may be the program's own code (a logger, a handler):
/// that runs with signals blocked as well, and so do the threads and processes that it starts.
///
/// # Errors
///
/// The system's, where it starts no thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    super::fork::settle();
    #[cfg(unix)]
    let _mask = super::signals::Mask::block_all();
    let handle = thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(handle.thread().clone())
}
