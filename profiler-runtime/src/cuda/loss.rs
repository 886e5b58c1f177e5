//! How often scopes had no GPU time, for each reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_report::CudaLoss;

/// How often each reason occurred, by its discriminant.
static COUNTS: [AtomicU64; CudaLoss::ALL.len()] =
    [const { AtomicU64::new(0) }; CudaLoss::ALL.len()];

/// Counts a scope that has no GPU time for `reason`.
pub(crate) fn count(reason: CudaLoss) {
    COUNTS[reason as usize].fetch_add(1, Relaxed);
}

/// Returns the reasons that occurred, each with its count.
pub(crate) fn counted() -> Vec<(CudaLoss, u64)> {
    CudaLoss::ALL
        .into_iter()
        .map(|reason| (reason, COUNTS[reason as usize].load(Relaxed)))
        .filter(|(_, count)| *count > 0)
        .collect()
}
