//! Waiting, bounded, until what was logged has arrived.

use std::time::{Duration, Instant};

use crate::collect;
use crate::cuda;
use crate::process::fork;

/// What became of the log entries of this process so far. An entry for several loggers is one for each of them.
///
/// Each entry is in one of `delivered`, `dropped` and `left`, so that they add up to what was logged before the call.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let report = profiler_runtime::flush(Duration::from_secs(1));
/// assert_eq!(report.left, 0, "all that was logged before has arrived");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Entries that their loggers took and, as far as they say so, brought to safety.
    pub delivered: u64,
    /// Entries that were dropped; the summary says why.
    pub dropped: u64,
    /// Entries logged before the call that are still on their way: the time did not suffice, or a
    /// logger does not return or cannot save what it took.
    pub left: u64,
    /// Scopes measured before the call whose GPU time has not been read: the device is still at work on
    /// them, or the driver does not answer.
    pub unread: u64,
}

/// Waits until the GPU times measured so far have been read, everything logged so far has reached its logger
/// and the loggers are flushed, or until the time is over.
///
/// This is the only thing in the profiler that waits for the device, but for the argument `sync`. Measured
/// threads go on meanwhile. It never waits longer than `timeout`, whatever the loggers do.
///
/// # Examples
///
/// ```
/// let report = profiler_runtime::flush(std::time::Duration::from_millis(100));
/// println!("{} delivered, {} dropped, {} left", report.delivered, report.dropped, report.left);
/// ```
pub fn flush(timeout: Duration) -> FlushReport {
    flush_within(timeout, false)
}

/// The same at the end of a program; then nothing that was made for measuring on the GPU is left.
pub(crate) fn flush_and_close(timeout: Duration) -> FlushReport {
    flush_within(timeout, true)
}

fn flush_within(timeout: Duration, close: bool) -> FlushReport {
    // A forked process has none of our threads: what waits there stays.
    let own = fork::is_own_process();
    let start = Instant::now();
    // Entries may wait for the device; what does not is not to wait for a device that hangs.
    let unread = if own {
        cuda::wait_until_read(timeout / 4 * 3, close)
    } else {
        0
    };
    let rest = timeout.saturating_sub(start.elapsed());
    let counts = collect::flush(own.then_some(rest));
    FlushReport {
        delivered: counts.delivered,
        dropped: counts.dropped,
        left: counts.left,
        unread,
    }
}
