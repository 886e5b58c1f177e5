//! Systems without Unix signals: there are none to keep away, and none that could start a session.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Stands in for the mask that keeps signals from a new thread.
pub(crate) struct SignalMask;

impl SignalMask {
    pub(crate) fn block_all() -> Self {
        Self
    }
}

/// Returns `None`: no signal has a name.
pub(crate) fn parse(_text: &str) -> Option<i32> {
    None
}

/// # Errors
///
/// Always returns [`io::ErrorKind::Unsupported`].
pub(crate) fn set_flag_on(_signal: i32, _flag: &Arc<AtomicBool>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn unblock(_signal: i32) {}

/// Calls `write`, which raises no signal.
pub(crate) fn protect_write<T>(write: impl FnOnce() -> T) -> T {
    write()
}
