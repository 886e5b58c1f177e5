//! One row of the averages.

use super::times::AverageTimes;
use crate::report::summary::Verdict;

/// All calls of one name, or of one name with the same shapes or the same stack, where it was asked for.
///
/// Times are in nanoseconds, memory is in bytes. CPU and CUDA times stand side by side and are never added.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AverageRow {
    /// The name.
    pub name: String,
    /// Where the first call site of the name stands, as `file:line`.
    pub location: String,
    /// What the argument `shapes` gave, where rows are grouped by it; none for calls that gave nothing.
    pub input_shapes: Option<Vec<Box<[usize]>>>,
    /// The scopes around the calls, innermost first, as `file(line): name`, where rows are grouped by them.
    pub stack: Option<Vec<String>>,
    /// All finished calls, recursive ones too; without replays of graphs, which no call belongs to.
    pub calls: u64,
    /// Calls that were not made, directly or not, from a call of the same row.
    pub primitive_calls: u64,
    /// Times on the CPU, where they were recorded.
    pub cpu: Option<AverageTimes>,
    /// Times on the GPU, where the calls have any; replays of captured graphs are calls of their own here.
    pub cuda: Option<AverageTimes>,
    /// The share of calls with a GPU time whose CPU span was as long as the GPU's, or longer: the device waited
    /// for launches.
    pub launch_bound: Option<f64>,
    /// Calls that were to have a GPU time and have none.
    pub without_cuda: u64,
    /// How many of the calls were futures.
    pub futures: u64,
    /// The time futures spent polling; the rest of their total they waited.
    pub polled_ns: f64,
    /// Calls that ended with a panic.
    pub panicked: u64,
    /// Futures that were dropped before they were done.
    pub dropped_futures: u64,
    /// What the calls did to memory, where that was profiled.
    pub memory: Option<AverageMemory>,
    /// Whether the calls are too short to be timed one by one on the CPU: the mean of many is right all the same,
    /// single values (minimum, maximum, percentiles, deviation) are not.
    pub too_short: bool,
}

impl AverageRow {
    /// What the calls wait for, by their majority; none where they have no GPU time.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.launch_bound.map(Verdict::of_share)
    }

    /// What was said of shapes, as `torch.profiler` prints it: `[[2, 3], [4]]`.
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

/// What the calls of a row did to memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AverageMemory {
    /// Host bytes allocated less those freed, of calls that were not made from a call of the same row, with what
    /// they called (`cpu_memory_usage`).
    pub cpu_net: i64,
    /// The same of all calls, without what they called (`self_cpu_memory_usage`).
    pub self_cpu_net: i64,
    /// Host bytes allocated, whether freed again or not; as `cpu_net`.
    pub cpu_allocated: u64,
    /// The same without what they called.
    pub self_cpu_allocated: u64,
    /// The most host bytes that one call had in use at once, over what was in use when it began.
    pub cpu_peak: u64,
    /// The most host bytes that the process had in use at the end of a call.
    pub cpu_in_use: u64,
    /// Bytes of the device in use at the end less those at the beginning, as `cpu_net`, where that was known for any
    /// call (`cuda_memory_usage`).
    pub cuda_net: Option<i64>,
    /// The same of all calls, without what they called (`self_cuda_memory_usage`).
    pub self_cuda_net: Option<i64>,
    /// The most bytes of the device in use at the end of a call.
    pub cuda_in_use: Option<u64>,
    /// The most bytes that the driver had reserved at the end of a call.
    pub cuda_reserved: Option<u64>,
}
