//! One row of the averages.

use super::times::AverageTimes;
use crate::report::summary::Verdict;

/// All calls of one name, or of one name with the same shapes or the same stack if rows are grouped by them.
///
/// Times are in nanoseconds, memory is in bytes. CPU and CUDA times are separate and are never added.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AverageRow {
    /// The name.
    pub name: String,
    /// The first call site of the name, as `file:line`.
    pub location: String,
    /// The values of the argument `shapes`, if rows are grouped by them; `None` for calls without shapes.
    pub input_shapes: Option<Vec<Box<[usize]>>>,
    /// The enclosing scopes, innermost first, as `file(line): name`, if rows are grouped by them.
    pub stack: Option<Vec<String>>,
    /// Finished calls, including recursive ones, without replays of graphs, which belong to no call.
    pub calls: u64,
    /// Calls that were not made, directly or indirectly, from a call of the same row.
    pub primitive_calls: u64,
    /// Times on the CPU, if they were recorded.
    pub cpu: Option<AverageTimes>,
    /// Times on the GPU, if the calls have any. Replays of captured graphs count as calls here.
    pub cuda: Option<AverageTimes>,
    /// The fraction of the calls with a GPU time whose CPU time was at least as long as the GPU time: the device waited
    /// for launches.
    pub launch_bound: Option<f64>,
    /// Calls whose GPU time is missing.
    pub without_cuda: u64,
    /// Calls that were futures.
    pub futures: u64,
    /// The time of the polls of futures; for the rest of their total, the futures waited.
    pub polled_ns: f64,
    /// Calls that ended with a panic.
    pub panicked: u64,
    /// Futures that were dropped before they completed.
    pub dropped_futures: u64,
    /// The memory of the calls, if it was profiled.
    pub memory: Option<AverageMemory>,
    /// `true` if the calls are too short to be timed individually on the CPU: the mean is correct, single values
    /// (minimum, maximum, percentiles, deviation) are not.
    pub too_short: bool,
}

impl AverageRow {
    /// Returns the verdict for the majority of the calls; `None` if they have no GPU time.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.launch_bound.map(Verdict::of_share)
    }

    /// Returns the shapes as `torch.profiler` prints them: `[[2, 3], [4]]`.
    pub(super) fn shapes_text(&self) -> String {
        let Some(shapes) = &self.input_shapes else {
            return String::new();
        };
        let extents = |shape: &[usize]| {
            let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("[{}]", extents.join(", "))
        };
        let shapes: Vec<String> = shapes.iter().map(|shape| extents(shape)).collect();
        format!("[{}]", shapes.join(", "))
    }
}

/// The memory of the calls of a row, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AverageMemory {
    /// Host bytes allocated less those freed, including children, without calls made from a call of the same row
    /// (`cpu_memory_usage`).
    pub cpu_net: i64,
    /// Host bytes allocated less those freed, of all calls without their children (`self_cpu_memory_usage`).
    pub self_cpu_net: i64,
    /// Host bytes allocated, freed or not; counted like `cpu_net`.
    pub cpu_allocated: u64,
    /// Host bytes allocated, of all calls without their children.
    pub self_cpu_allocated: u64,
    /// The highest host memory use during one call, relative to the start of that call.
    pub cpu_peak: u64,
    /// The highest host memory use of the process at the end of a call.
    pub cpu_in_use: u64,
    /// Device bytes in use at the end less those at the start, counted like `cpu_net`, if that was known for any call
    /// (`cuda_memory_usage`).
    pub cuda_net: Option<i64>,
    /// Device bytes in use at the end less those at the start, of all calls without their children
    /// (`self_cuda_memory_usage`).
    pub self_cuda_net: Option<i64>,
    /// The highest device memory use at the end of a call.
    pub cuda_in_use: Option<u64>,
    /// The highest number of bytes that the driver had reserved at the end of a call.
    pub cuda_reserved: Option<u64>,
}
