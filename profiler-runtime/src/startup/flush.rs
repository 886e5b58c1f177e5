//! Waiting, for a bounded time, until everything that was logged has reached its logger.

use std::time::Duration;

use profiler_host::process::fork;
use profiler_host::process::platform::Instant;

use crate::collect;
use crate::cuda;
use crate::losses;

/// The state of all log entries of this process. An entry for several loggers counts once for each of them.
///
/// `delivered`, `dropped` and `left` add up to the number of entries logged before the call.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// let report = profiler_runtime::flush(Duration::from_secs(1));
/// assert_eq!(report.left, 0, "everything logged before has arrived");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Entries that their loggers took and saved. If a logger does not say what it has saved, every entry that it took
    /// counts.
    pub delivered: u64,
    /// Entries that were dropped. The summary gives the reasons.
    pub dropped: u64,
    /// Entries logged before the call that have not arrived: the timeout was too short, or a logger does not return or
    /// cannot save what it took.
    pub left: u64,
    /// Scopes measured before the call whose GPU time has not been read: the device is still working on them, or the
    /// driver does not answer.
    pub unread: u64,
}

/// Waits until the GPU times measured so far have been read, everything logged so far has reached its logger, and the
/// loggers are flushed; at most for `timeout`.
///
/// Apart from the argument `sync`, nothing else in the profiler waits for the device. Measured threads continue. While a logger
/// does not return, nothing arrives at the others, and the wait lasts for `timeout`.
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

/// Flushes at the end of the program, and releases everything that was created for measuring on the GPU.
pub(crate) fn flush_and_close(timeout: Duration) -> FlushReport {
    flush_within(timeout, true)
}

fn flush_within(timeout: Duration, close: bool) -> FlushReport {
    // A forked process has none of the profiler's threads, which would do the work.
    let is_own_process = fork::is_own_process();
    let start = Instant::now();
    // GPU times first, since log entries may wait for them. Leave time for the others if the device hangs.
    let unread = if is_own_process {
        cuda::wait_until_read(timeout / 4 * 3, close)
    } else {
        0
    };
    let rest = timeout.saturating_sub(start.elapsed());
    let counts = collect::flush(is_own_process.then_some(rest));
    losses::warn_of_drops();
    FlushReport {
        delivered: counts.delivered,
        dropped: counts.dropped,
        left: counts.left,
        unread,
    }
}
