//! Launches and records that were lost, by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a launch or a record was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded, so nothing is lost")
)]
pub(crate) enum WorkLoss {
    /// CUPTI dropped the record.
    Dropped,
    /// The record was in the buffer that CUPTI gets if all others are in use, or in one of another client. Such a buffer
    /// is not read, and counts as one record.
    NoBuffer,
    /// CUPTI could not read the rest of a buffer, which counts as one record.
    Unreadable,
    /// The queue of launches was full, or too many launches waited for their records: the work has no scope.
    LaunchQueueFull,
    /// No window took the record in time, or too many records waited for their launches.
    QueueFull,
    /// The table of names was full: the kernel has no name.
    NoName,
}

/// How many launches and records were lost so far, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkLosses {
    pub(crate) dropped: u64,
    pub(crate) no_buffer: u64,
    pub(crate) unreadable: u64,
    pub(crate) launch_queue_full: u64,
    pub(crate) queue_full: u64,
    pub(crate) no_name: u64,
}

static COUNTS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

/// Counts losses.
pub(crate) fn lose(reason: WorkLoss, count: u64) {
    COUNTS[reason as usize].fetch_add(count, Relaxed);
}

impl WorkLosses {
    /// Returns the losses so far.
    pub(crate) fn now() -> Self {
        let count = |reason: WorkLoss| COUNTS[reason as usize].load(Relaxed);
        Self {
            dropped: count(WorkLoss::Dropped),
            no_buffer: count(WorkLoss::NoBuffer),
            unreadable: count(WorkLoss::Unreadable),
            launch_queue_full: count(WorkLoss::LaunchQueueFull),
            queue_full: count(WorkLoss::QueueFull),
            no_name: count(WorkLoss::NoName),
        }
    }

    /// Returns the losses since `before` was read.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            dropped: self.dropped - before.dropped,
            no_buffer: self.no_buffer - before.no_buffer,
            unreadable: self.unreadable - before.unreadable,
            launch_queue_full: self.launch_queue_full - before.launch_queue_full,
            queue_full: self.queue_full - before.queue_full,
            no_name: self.no_name - before.no_name,
        }
    }
}
