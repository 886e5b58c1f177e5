//! Captures of graphs, and what they hold.

use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::sys::CUgraphInstantiate_flags;
use cudarc::driver::sys::CUstreamCaptureMode::{
    self, CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
};
use cudarc::driver::{CudaGraph, CudaStream, sys};

use profiler_tests::gpu::simulator;

pub(crate) const MODES: [CUstreamCaptureMode; 3] = [
    CU_STREAM_CAPTURE_MODE_GLOBAL,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    CU_STREAM_CAPTURE_MODE_RELAXED,
];

pub(crate) fn begin(stream: &CudaStream) {
    let mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    stream.begin_capture(mode).expect("it may capture");
}

pub(crate) fn end(stream: &Arc<CudaStream>) -> CudaGraph {
    let graph = stream.end_capture(CUgraphInstantiate_flags(0));
    graph
        .expect("the capture is valid")
        .expect("it captured something")
}

pub(crate) fn nodes(graph: &CudaGraph) -> usize {
    let mut count = 0;
    // SAFETY: the graph lives; only how many nodes there are is asked for.
    let asked = unsafe { sys::cuGraphGetNodes(graph.cu_graph(), null_mut(), &raw mut count) };
    asked.result().expect("the graph lives");
    count
}

/// Captures that something spoiled so far.
pub(crate) fn spoiled() -> u64 {
    simulator().report().expect("a report").captures_invalidated
}
