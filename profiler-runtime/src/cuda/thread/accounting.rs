//! The account of a scope at its end: what did not reach the resolver is counted, with its reason.

use profiler_host::diagnostics::user_code;
use profiler_report::{CudaLoss, DropReason};

use super::state;
use crate::cuda::ffi::library;
use crate::cuda::loss;
use crate::cuda::resolver;
use crate::log_record::LogRequest;
use crate::losses::{count_dropped, note_full_ring};
use crate::stats::StatCell;

/// The destination of a measurement at the end of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The resolver gets it.
    ToResolver,
    /// The thread's ring was full or does not exist.
    Rejected,
    /// As `Rejected`, but the log entry has reached its logger.
    RejectedAfterLog,
    /// There was none: the scope had been abandoned, or the driver has shut down.
    Nothing,
}

/// A request that is dropped after the thread's state is released, if nothing has taken it: the destructor of a logger is user
/// code.
struct DeferredLog(Option<LogRequest>);

impl Drop for DeferredLog {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            drop_log(&mut self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_log(log: &mut Option<LogRequest>) {
    user_code::drop_value(log.take());
}

/// Ends a scope with `end`, and counts what did not reach the resolver: the GPU time, and the log entry that waits for
/// it.
#[inline(always)]
pub(super) fn account(
    cell: Option<&'static StatCell>,
    log: Option<LogRequest>,
    end: impl FnOnce(&mut Option<LogRequest>) -> Sent,
) {
    let every = log.as_ref().map(|log| log.every);
    let mut log = DeferredLog(log);
    if let Some(log) = &mut log.0 {
        log.skipped = cell.map_or(0, |cell| cell.skipped.get());
    }
    let sent = end(&mut log.0);
    drop(log);
    if every.is_some() || sent != Sent::ToResolver {
        account_for(cell, every, sent);
    }
}

/// Counts what became of a measurement, and of a log entry.
#[cold]
#[inline(never)]
pub(super) fn account_for(cell: Option<&'static StatCell>, every: Option<u32>, sent: Sent) {
    let is_rejected = matches!(sent, Sent::Rejected | Sent::RejectedAfterLog);
    let rejection = is_rejected.then(rejection);
    if let Some(reason) = rejection {
        loss::count(reason);
    }
    if let (Some(cell), true) = (cell, is_rejected) {
        cell.without_cuda.add(1);
    }
    if let Some(every) = every {
        account_log(cell, every, sent, rejection);
    }
}

/// Returns why a measurement was rejected.
#[cold]
pub(super) fn rejection() -> CudaLoss {
    if resolver::is_missing() {
        CudaLoss::NoResolver
    } else if state::with(|thread| thread.ring.is_none()) == Some(true) {
        CudaLoss::NoMemory
    } else {
        CudaLoss::RingFull
    }
}

/// Counts a log entry that did not reach the resolver, or clears the count of those that did not before.
fn account_log(
    cell: Option<&'static StatCell>,
    every: u32,
    sent: Sent,
    rejection: Option<CudaLoss>,
) {
    match (sent, cell) {
        (Sent::ToResolver | Sent::RejectedAfterLog, Some(cell)) => cell.skipped.set(0),
        (Sent::ToResolver | Sent::RejectedAfterLog, None) => {}
        (Sent::Rejected | Sent::Nothing, _)
            if resolver::is_missing() || library::is_shut_down() =>
        {
            count_dropped(DropReason::NoCollector, 1);
        }
        // The scope was abandoned, or its thread is ending: no GPU time will ever arrive for the entry.
        (Sent::Nothing, cell) => {
            if let Some(cell) = cell {
                cell.skipped.add(every.into());
            }
            count_dropped(DropReason::NoCudaTime, 1);
        }
        (Sent::Rejected, _) if rejection == Some(CudaLoss::NoMemory) => {
            count_dropped(DropReason::NoMemory, 1);
        }
        (Sent::Rejected, Some(cell)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
            note_full_ring();
        }
        (Sent::Rejected, None) => count_dropped(DropReason::RingFull, 1),
    }
}
