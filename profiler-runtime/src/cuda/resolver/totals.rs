//! Counting GPU times of calls in the totals of their names.

use crate::cuda::loss::{self, CudaLoss};
use crate::name;
use crate::sync::ReentrancyGuard;

/// Notes time on another stream inside a call of this name.
pub(crate) fn count_elsewhere(id: u32, ns: f64) {
    if let Some(name) = name::by_id(id) {
        name.cuda.with(|totals| {
            totals.elsewhere += ns;
        });
    }
}

/// Counts a call that has no GPU time.
pub(crate) fn count_without(id: u32, reason: CudaLoss) {
    loss::count(reason);
    let _busy = ReentrancyGuard::try_enter();
    if let Some(name) = name::by_id(id) {
        name.cuda.with(|totals| totals.without += 1);
    }
}
