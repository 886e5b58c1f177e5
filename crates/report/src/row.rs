//! One row of a report.

use super::energy::Energy;
use super::gpu_use::GpuUse;
use super::histogram::{Histogram, Unsaved};
use super::history::HistoryPoint;
use super::text::Field;
use super::times::Times;
use super::verdict::Verdict;
use crate::memory::MemoryUse;
use crate::time_source::TimeSource;

/// All calls of one name; in [`KeyAverages`](super::KeyAverages) that are grouped further, all calls of one name with
/// the same shapes or the same stack.
///
/// Times are in nanoseconds, memory is in bytes. CPU and CUDA times are separate and are never added.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Row {
    /// The name: a function's path with its type, or the argument `name`.
    pub name: String,
    /// The beginning of the tag that loggers get: `Trainer/forward` of `Trainer/forward/cuda_ms`. The rest says which
    /// time was logged, and its unit.
    pub tag: String,
    /// The first call site of the name, as `file:line`.
    pub location: String,
    /// The values of the argument `shapes`, if rows are grouped by them; `None` for calls without shapes.
    pub input_shapes: Option<Vec<Box<[usize]>>>,
    /// The enclosing scopes, innermost first, as `file(line): name` with `,` for `;`, if rows are grouped by them.
    pub stack: Option<Vec<String>>,
    /// Finished calls, including recursive ones, without replays of graphs, which belong to no call. A span of `tracing` is
    /// one call, however often it is entered; each time has its share in the times ([`Times::calls`]).
    pub calls: u64,
    /// Calls that were not made, directly or indirectly, from a call of the same row.
    pub primitive_calls: u64,
    /// Times on the CPU; `None` if no call has finished, or if the session does not record CPU times.
    pub cpu: Option<Times>,
    /// Times on the GPU; `None` if no call has one.
    pub cuda: Option<Times>,
    /// The ranges on streams with this name; `None` if there are none.
    pub gpu_ranges: Option<GpuRanges>,
    /// How long the GPUs were busy with the work of the calls, and how long these kept them waiting. `None` in a summary, where no
    /// kernels were recorded, in rows of kernels, and if rows are grouped further.
    pub gpu: Option<GpuUse>,
    /// How many calls took how long on the CPU; `None` without CPU times.
    pub cpu_histogram: Option<Histogram>,
    /// How many calls took how long on the GPU; `None` without GPU times.
    pub cuda_histogram: Option<Histogram>,
    /// When the calls ended, from the beginning of the run to the summary: at most 129 points, which add up to the other
    /// values of the row. Spans in which none ended are left out.
    ///
    /// A background thread samples it while `PROFILER_SUMMARY` names a file ending in `.json`
    /// or `.html`, or while `PROFILER_SUMMARY_INTERVAL` is set: ten times a second at
    /// first, then half as often each time that there are 128 points, of which each two are merged. The 128 rows with
    /// the largest shares of the time have a history, if they are among the first 1,024 names that were called. Empty
    /// otherwise, and in averages of a window.
    #[cfg_attr(feature = "serde", serde(default))]
    pub history: Vec<HistoryPoint>,
    /// The fraction of the calls with a GPU time whose CPU time was at least as long as the GPU time: the device waited
    /// for launches. Calls to which `cuda::bind_stream` bound streams are left out. `None` if no other call has a GPU time.
    pub launch_bound: Option<f64>,
    /// The verdict from the kernels that the calls launched, without those of scopes inside; `None` unless kernels were
    /// recorded, in a window or in a file of one.
    pub work_verdict: Option<Verdict>,
    /// The GPU time of scopes directly inside it on other streams. It is in no other value of this row. `None` without
    /// GPU times and in averages of a window.
    pub other_streams_ns: Option<f64>,
    /// The first eight streams it was measured on, by their handles. Empty in averages of a window.
    pub streams: Vec<String>,
    /// `true` if it was measured on a default stream, because neither its calls nor their threads named one, and saw
    /// almost no work there. `false` in averages of a window.
    pub idle_stream: bool,
    /// Calls whose GPU time is missing; a summary says why.
    pub without_cuda: u64,
    /// Calls without a GPU time because no stream was named for them, on threads where a CUDA context was or had been
    /// current. A function that launches nothing has such calls too, and needs no stream. 0 in averages of a window.
    pub without_stream: u64,
    /// Calls that were futures, and spans of `tracing` that were measured as a whole.
    pub futures: u64,
    /// The time of the polls of futures; for the rest of their total, the futures waited.
    pub polled_ns: f64,
    /// Closed spans of `tracing` that were entered several times, if each time was a call.
    pub reentered_spans: u64,
    /// How long the threads of the calls ran on a processor during them, including children, without waits and
    /// preemption. A recursive call counts once; a future counts the time of its polls. `None` unless thread times are
    /// measured (`Builder::thread_time`), and in averages of a window.
    ///
    /// In calls that began before thread times were measured, in those inside 65,536 others, and in some of those that
    /// end out of order, it is missing.
    pub thread_time_total_ns: Option<f64>,
    /// The thread time without that of children.
    pub self_thread_time_total_ns: Option<f64>,
    /// Calls that ended with a panic.
    pub panicked: u64,
    /// Futures that were dropped before they completed.
    pub dropped_futures: u64,
    /// Calls that have begun and not ended, recursive ones excluded. They are in no other value. 0 in averages.
    pub open: u64,
    /// Calls that ended out of order, before a scope inside them or after the one around them, or on another thread, as
    /// in a coroutine with a stack of its own: the self time is an upper bound. 0 in averages of a window.
    pub out_of_order: u64,
    /// `true` if the calls are too short to be timed individually on the CPU: the mean is correct, single values
    /// (minimum, maximum, percentiles, deviation) are not.
    pub too_short: bool,
    /// Log entries that found the ring full. The calls are in all other values. 0 in averages of a window.
    pub dropped_entries: u64,
    /// The time that the loggers of the name get. Undecided in averages of a window.
    pub source: TimeSource,
    /// The memory of the calls, if a session profiled it; `None` in a summary.
    pub memory: Option<MemoryStats>,
    /// The energy of the calls. `None` if no device was sampled, if the calls have no GPU time in that time, or if the
    /// energy of their device cannot be shared out; a note below the table says why.
    pub energy: Option<Energy>,
    /// The place of the name in the order in which names were first used; `None` in rows of windows and files.
    #[cfg_attr(feature = "serde", serde(skip))]
    #[doc(hidden)]
    pub number: Unsaved<Option<u32>>,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

impl Row {
    /// Returns the verdict from the kernels that the calls launched, if they were recorded, or else that for the majority
    /// of the calls. `None` if they have no GPU time.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let of_times = self.launch_bound.map(Verdict::of_share);
        self.work_verdict.or(of_times)
    }

    /// Returns the calls that the GPU times are of. Times that the program reported are of all calls.
    #[doc(hidden)]
    #[must_use]
    pub fn cuda_calls(&self) -> u64 {
        self.cuda.map_or(0, |cuda| {
            if cuda.calls > 0 {
                cuda.calls
            } else {
                self.calls
            }
        })
    }

    /// Returns the part of the GPU self time in which the device surely worked: that of calls that returned before their work
    /// ended. A pair that is around others also has the time between those. Times that were only reported are of the device
    /// alone.
    #[doc(hidden)]
    #[must_use]
    pub fn busy_part(&self) -> f64 {
        // Files have a decimal of a nanosecond.
        match self.cuda {
            Some(cuda) if cuda.total_ns - cuda.self_ns <= 1.0 => {
                let unknown = if cuda.calls == 0 { 0.0 } else { 1.0 };
                1.0 - self.launch_bound.unwrap_or(unknown)
            }
            _ => 0.0,
        }
    }

    /// Returns the shapes as `torch.profiler` prints them: `[[2, 3], [4]]`.
    pub(crate) fn shapes_text(&self) -> String {
        let Some(shapes) = &self.input_shapes else {
            return String::new();
        };
        let dimensions = |shape: &[usize]| {
            let dimensions: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("[{}]", dimensions.join(", "))
        };
        let shapes: Vec<String> = shapes.iter().map(|shape| dimensions(shape)).collect();
        format!("[{}]", shapes.join(", "))
    }
}

/// The ranges on streams that the program named, as PyTorch writes them (`gpu_user_annotation`): each lasts from the
/// beginning of its first work to the end of its last one. No other value has their time, which is mostly that of the work
/// inside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct GpuRanges {
    /// How many there are: a call has one on each stream that it used.
    pub count: u64,
    /// How long they lasted together, in nanoseconds.
    pub total_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

impl GpuRanges {
    pub(super) fn add(&mut self, ns: f64) {
        self.count += 1;
        self.total_ns += ns;
    }

    pub(super) fn fields(&self) -> Vec<Field> {
        vec![
            Field::raw("count", self.count),
            Field::nanoseconds("total_ns", self.total_ns),
        ]
    }
}

/// The memory of the calls of a row, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct MemoryStats {
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
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// Bytes that a call used without its children.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnMemory {
    pub(super) host_net: i64,
    pub(super) allocated: u64,
    pub(super) device_net: i64,
}

impl MemoryStats {
    /// Counts the memory of a call; `own` is that without its children.
    pub(super) fn count(&mut self, memory: &MemoryUse, own: OwnMemory, is_outermost: bool) {
        self.self_cpu_net = self.self_cpu_net.saturating_add(own.host_net);
        self.self_cpu_allocated = self.self_cpu_allocated.saturating_add(own.allocated);
        self.cpu_peak = self.cpu_peak.max(memory.host_peak);
        self.cpu_in_use = self.cpu_in_use.max(memory.host_total);
        if is_outermost {
            self.cpu_net = self.cpu_net.saturating_add(memory.host_net);
            self.cpu_allocated = self.cpu_allocated.saturating_add(memory.host_allocated);
        }
        let Some(net) = memory.device_net else { return };
        let add = |sum: &mut Option<i64>, bytes| {
            *sum = Some(sum.unwrap_or_default().saturating_add(bytes));
        };
        add(&mut self.self_cuda_net, own.device_net);
        add(&mut self.cuda_net, if is_outermost { net } else { 0 });
        self.cuda_in_use = self.cuda_in_use.max(memory.device_total);
        self.cuda_reserved = self.cuda_reserved.max(memory.device_reserved);
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_only_reported_are_of_a_busy_device_and_of_all_calls() {
        let row = |calls, total_ns, launch_bound| Row {
            calls: 4,
            launch_bound,
            cuda: Some(Times {
                calls,
                total_ns,
                self_ns: 8.0,
                ..Times::default()
            }),
            ..Row::default()
        };
        let reported = row(0, 8.0, None);
        assert_eq!((reported.busy_part(), reported.cuda_calls()), (1.0, 4));
        let measured = row(3, 8.0, Some(0.25));
        assert_eq!((measured.busy_part(), measured.cuda_calls()), (0.75, 3));
        assert_eq!(row(3, 8.0, None).busy_part(), 0.0, "it is not known");
        assert_eq!(
            row(3, 20.0, Some(0.0)).busy_part(),
            0.0,
            "others are inside"
        );
        assert_eq!(
            (Row::default().busy_part(), Row::default().cuda_calls()),
            (0.0, 0)
        );
    }
}
