//! What is called.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_runtime::{flush, measure_execution_time, scope};

/// Calls in a batch. With its warm-up under half of what a thread's ring holds by default.
pub(crate) const BATCH: u64 = 900;

/// The least that a call can do.
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
    let _scope = scope!("on a stream that is lent", stream = stream);
    body(x)
}

#[inline(never)]
pub(crate) fn section(x: u64) -> u64 {
    let _scope = scope!("on whatever stream");
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

/// Waits until what was measured has been read.
pub(crate) fn arrive() {
    flush(Duration::from_secs(5));
}

/// The loop that callgrind counts in.
#[inline(never)]
pub(crate) fn counted_calls(run: fn(u64), calls: u64) {
    run(black_box(calls));
}
