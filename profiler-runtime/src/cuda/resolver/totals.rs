//! Counts GPU times and losses in the statistics of their names.

use profiler_host::diagnostics;
use profiler_host::sync::ReentrancyGuard;
use profiler_report::CudaLoss;

use crate::cuda::loss;
use crate::name::{self, Name};
use crate::stats::GpuCall;

/// Counts a GPU time. Warns if the name turns out to be measured on the wrong stream.
pub(super) fn count(name: &Name, call: &GpuCall) {
    if name.cuda.with(|totals| totals.count(call)) {
        warn_of_wrong_stream(name);
    }
}

/// Counts the time of a scope on another stream inside a call of this name.
pub(super) fn count_on_other_streams(id: u32, ns: f64) {
    if let Some(name) = name::by_id(id) {
        name.cuda.with(|totals| totals.other_streams += ns);
    }
}

/// Counts a call that has no GPU time.
pub(crate) fn count_without(id: u32, reason: CudaLoss) {
    loss::count(reason);
    // A measured allocator must not count a call while the lock of the statistics is held.
    let _guard = ReentrancyGuard::try_enter();
    if let Some(name) = name::by_id(id) {
        name.cuda.with(|totals| totals.without += 1);
    }
}

#[cold]
fn warn_of_wrong_stream(name: &Name) {
    diagnostics::warn_once(&format!(
        "`{}` launches on other streams than the default one, on which it is measured: its GPU time does not include \
         that work; write `stream = …` with the stream that it launches on, or run it inside \
         `cuda::with_stream(&stream, || …)`",
        name.text
    ));
}
