//! Writes what was asked for before a signal ends the process.
//!
//! The signals of a terminal and of service managers end a program that does nothing about them, and with it what the
//! profiler has not written. A handler in place of the default action lets a thread of the profiler run the hooks of the exit
//! first; then the process dies of the signal, as it would have.
//!
//! # What the program sees
//!
//! The handler is installed by `sigaction`, in place of the default action alone: a signal that the program handles or ignores
//! is left alone. A handler that the program installs later replaces this one. If it calls the one before it, as
//! `signal-hook-registry` does for tokio, this one finds that it is not the installed one and does nothing, as the default action
//! of a chain does. A signal that all threads block, for `sigwait` or a `signalfd`, never comes here. `exec` restores
//! the default action.

#[cfg(all(unix, not(target_vendor = "apple"), not(miri)))]
mod unix;

#[cfg(all(unix, not(target_vendor = "apple"), not(miri)))]
pub use unix::write_before_ending;

/// Does nothing: Windows has no such signals, and Apple's systems no semaphores for their handlers. They end a program at once.
#[cfg(not(all(unix, not(target_vendor = "apple"), not(miri))))]
pub fn write_before_ending(_excepted: Option<i32>) {}
