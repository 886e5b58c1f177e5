//! Signals belong to the program: the profiler's threads receive none, and its writes raise none. The exception is the
//! signal that `PROFILER_SIGNAL` names, and those that end a program which does nothing about them ([`ending`](crate::ending)).

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use other::{SignalMask, parse, protect_write, set_flag_on, unblock};
#[cfg(all(test, unix, not(miri)))]
pub use unix::is_blocked;
#[cfg(all(unix, feature = "signals"))]
pub use unix::set_flag_on;
#[cfg(unix)]
pub use unix::{SignalMask, parse, protect_write, unblock};
