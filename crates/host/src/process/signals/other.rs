//! Systems without Unix signals: there are none to keep away, and none that could start a session.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Stands in for the mask that keeps signals from a new thread.
pub struct SignalMask;

impl SignalMask {
    /// Returns the mask: there is nothing to block.
    pub fn block_all() -> Self {
        Self
    }
}

/// Returns `None`: no signal has a name.
pub fn parse(_text: &str) -> Option<i32> {
    None
}

/// Returns an error: no signal sets a flag.
///
/// # Errors
///
/// Always returns [`io::ErrorKind::Unsupported`].
pub fn set_flag_on(_signal: i32, _flag: &Arc<AtomicBool>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: no signal is blocked.
pub fn unblock(_signal: i32) {}

/// Calls `write`, which raises no signal.
pub fn protect_write<T>(write: impl FnOnce() -> T) -> T {
    write()
}
