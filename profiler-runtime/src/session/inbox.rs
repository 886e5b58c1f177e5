//! GPU times that the resolver has read, on their way to the windows.

use std::sync::MutexGuard;

use super::record::GpuRecord;
use crate::process::Lock;

static INBOX: Lock<Vec<GpuRecord>> = Lock::new(Vec::new());

fn inbox() -> MutexGuard<'static, Vec<GpuRecord>> {
    INBOX.lock()
}

/// Hands a GPU time on; to be asked first whether one is wanted.
pub(crate) fn deliver(gpu: GpuRecord) {
    inbox().push(gpu);
}

pub(super) fn take() -> Vec<GpuRecord> {
    std::mem::take(&mut *inbox())
}
