//! GPU times that the resolver has read, on their way to the windows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::record::GpuRecord;

static INBOX: Mutex<Vec<GpuRecord>> = Mutex::new(Vec::new());

fn inbox() -> MutexGuard<'static, Vec<GpuRecord>> {
    INBOX.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands a GPU time on; to be asked first whether one is wanted.
pub(crate) fn deliver(gpu: GpuRecord) {
    inbox().push(gpu);
}

pub(super) fn take() -> Vec<GpuRecord> {
    std::mem::take(&mut *inbox())
}
