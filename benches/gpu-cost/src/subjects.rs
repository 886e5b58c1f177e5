//! The measured functions.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_runtime::{flush, measure_execution_time, scope};

/// The calls per batch. With its warm-up, a batch fills less than half of a thread's default ring.
pub(crate) const BATCH: u64 = 900;

/// The smallest body of a call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "it is the body of each subject")]
fn body(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
pub(crate) fn bare(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
pub(crate) fn on_stream(stream: &Arc<CudaStream>, x: u64) -> u64 {
    let _scope = scope!("on a stream", stream = stream);
    body(x)
}

#[inline(never)]
pub(crate) fn on_lent_stream(stream: &CudaStream, x: u64) -> u64 {
    let _scope = scope!("on a stream that is borrowed", stream = stream);
    body(x)
}

#[inline(never)]
pub(crate) fn section(x: u64) -> u64 {
    let _scope = scope!("on the current stream");
    body(x)
}

#[inline(never)]
pub(crate) fn nested(x: u64) -> u64 {
    let _scope = scope!("around another");
    section(x)
}

#[inline(never)]
#[measure_execution_time]
pub(crate) fn annotated(x: u64) -> u64 {
    body(x)
}

pub(crate) struct Model {
    pub(crate) stream: Arc<CudaStream>,
}

impl Model {
    #[inline(never)]
    #[measure_execution_time(stream = &self.stream)]
    pub(crate) fn forward(&self, x: u64) -> u64 {
        body(x)
    }
}

/// Waits until all GPU times have been read.
pub(crate) fn arrive() {
    flush(Duration::from_secs(5));
}

/// The loop in which callgrind counts.
#[inline(never)]
pub(crate) fn counted_calls(run: fn(u64), calls: u64) {
    run(black_box(calls));
}
