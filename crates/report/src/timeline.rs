//! The time line, as plain data.

#[cfg(any(feature = "export", feature = "trace"))]
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::gpu_work::{GpuWork, GpuWorkKind};
use crate::memory::MemoryUse;
use crate::text::units;
use profiler_cuda_sys::driver::DeviceProperties;

/// The scopes on the threads of a program, and their work on the streams of its devices, with their times.
///
/// All formats that show single scopes are written from it: it comes from a `Trace`, or from a file that
/// another program wrote. It is plain data without ties to the running program.
///
/// Times are whole nanoseconds since [`start_unix_ns`](Self::start_unix_ns).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The title of the window, such as the name of the program or of the file.
    pub title: String,
    /// The beginning of the time line, in nanoseconds since the Unix epoch.
    pub start_unix_ns: i64,
    /// The time until the window had closed and everything in it had ended.
    pub duration_ns: i64,
    /// Names and the source locations of their first call sites; [`Slice::name`] is an index.
    pub names: Vec<SliceName>,
    /// Threads and streams; [`Slice::track`] is an index.
    pub tracks: Vec<Track>,
    /// Scopes, and what ran on the GPU: first the slices of threads and futures, each after its parent; then those of
    /// streams. On each track they come in the order of their starts, and each one after those around it.
    pub slices: Vec<Slice>,
    /// Texts for [`Slice::shapes`], such as `[[32, 64], []]`.
    pub shapes: Vec<String>,
    /// Texts for [`Slice::category`], such as `user_annotation`.
    pub categories: Vec<Arc<str>>,
    /// What is known of some slices only, for [`Slice::details`].
    pub details: Vec<SliceDetails>,
    /// Kernels, copies and other work, for [`Slice::work`].
    pub work: Vec<GpuWork>,
    /// `true` if kernels were recorded in all processes, also if none ran.
    pub has_kernels: bool,
    /// The times in which kernels, copies and fills were not recorded, although the rest was. Work of these times is missing,
    /// and no share of a device's time contains them.
    pub kernel_gaps: Vec<KernelGap>,
    /// Waits for a stream, an event or a device.
    pub waits: Vec<Wait>,
    /// The calls of CUDA that launched work, in the order of their starts; [`Slice::launch`] is an index.
    pub launches: Vec<Launch>,
    /// Replays of CUDA graphs. It is not known when they ran.
    pub replays: Vec<Replay>,
    /// The steps of the program in their order.
    pub steps: Vec<Step>,
    /// Values over time, such as the memory in use.
    pub counters: Vec<Counter>,
    /// For how long threads were on a processor, as far as that is known.
    pub processor: Vec<ProcessorUse>,
    /// Scopes, GPU times and kernels that are missing: the reason, and how many. The number is zero if it is not known. The
    /// text follows the number, as in “3 scopes came after the window was full”.
    pub missing: Vec<(String, u64)>,
    /// The properties of the devices, as far as they are known.
    pub devices: Vec<Device>,
    /// The number of processes of the job, if it is known.
    pub world_size: Option<u64>,
    /// How the processes of the job talk to each other, as in `nccl`, if it is known.
    pub backend: Option<String>,
    /// The groups of processes that its own process is in, as far as they are known.
    pub groups: Vec<ProcessGroup>,
    /// For a window of a session, the number of windows before it.
    pub cycle: Option<u64>,
    /// For a window of a session, the number of the step at its end.
    pub step_num: Option<u64>,
    /// Pairs that the program added, in order.
    pub metadata: Vec<(String, String)>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

impl Timeline {
    /// Returns `true` for a kernel, a copy or a fill: a device is busy with it. Files also have waits on streams.
    pub(crate) fn is_work(&self, slice: &Slice) -> bool {
        let work = || self.work.get(slice.work? as usize);
        let is_wait = |work: &GpuWork| matches!(work.kind, GpuWorkKind::Synchronization(_));
        slice.kind == SliceKind::GpuWork && !work().is_some_and(is_wait)
    }
}

/// The slices of a time line from the first one on a stream on: all that are on streams are among them. A walk through them
/// is short where there are none.
#[cfg(any(feature = "export", feature = "trace"))]
#[derive(Clone, Copy)]
pub(crate) struct OnGpu<'t> {
    first: u32,
    slices: &'t [Slice],
}

#[cfg(any(feature = "export", feature = "trace"))]
impl<'t> OnGpu<'t> {
    /// Returns the slices with their indices.
    pub(crate) fn iter(self) -> impl Iterator<Item = (u32, &'t Slice)> {
        (self.first..).zip(self.slices)
    }
}

#[cfg(any(feature = "export", feature = "trace"))]
impl Timeline {
    /// Finds the slices on streams.
    pub(crate) fn on_gpu(&self) -> OnGpu<'_> {
        let first = self.slices.iter().position(Slice::is_on_gpu);
        let first = first.unwrap_or(self.slices.len());
        OnGpu {
            first: u32::try_from(first).unwrap_or(u32::MAX),
            slices: &self.slices[first..],
        }
    }

    /// Returns the slice that a launch or a step is, if it is on a thread.
    pub(crate) fn slice_of(&self, index: Option<u32>) -> Option<u32> {
        let slice = self.slices.get(index? as usize)?;
        let has_track = (slice.track as usize) < self.tracks.len();
        index.filter(|_| has_track && !slice.is_on_gpu())
    }

    /// Returns the steps that are slices, by the indices of these.
    pub(crate) fn steps_of_slices(&self) -> HashMap<u32, &Step> {
        let steps = self.steps.iter();
        steps
            .filter_map(|step| Some((self.slice_of(step.slice)?, step)))
            .collect()
    }
}

/// The name of slices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceName {
    /// The whole name.
    pub text: Arc<str>,
    /// The name as viewers show it where there is little space: the end of the name, as much of it as no other name ends
    /// with.
    /// Empty if that is the whole name.
    pub short: Arc<str>,
    /// The source location as `file:line`; empty if it is not known.
    pub location: Arc<str>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A thread or a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// The kind of scopes on it.
    pub kind: TrackKind,
    /// The name of the thread or stream, as viewers show it.
    pub name: String,
    /// The system's id of the process.
    pub process: u64,
    /// The name of the process.
    pub process_name: String,
    /// The system's id of the thread, or the number of the stream on its device.
    pub id: u64,
    /// The ordinal of the stream's device.
    pub device: Option<u32>,
    /// The name of the stream's device; empty if it is not known.
    pub device_name: String,
    /// The rank of the process in its job.
    pub rank: Option<u64>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The kind of scopes on a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrackKind {
    /// Scopes and polls on a thread. They nest or follow each other. Scopes that would cross others, because their guards
    /// were dropped out of order, are on a further track of this kind.
    #[default]
    HostThread,
    /// Futures from their first poll to their end. They follow each other: there are as many tracks as there were futures
    /// at once.
    Futures,
    /// Work on a stream of a device. It nests or follows each other. Work of several threads that crosses is on a further
    /// track of this kind.
    GpuStream,
}

/// One scope on a thread, or work on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// The index of its track.
    pub track: u32,
    /// The index of its name.
    pub name: u32,
    /// When it began.
    pub start_ns: i64,
    /// How long it took, including its children.
    pub duration_ns: i64,
    /// How long it took without its children, as tables count it: a scope without the time in which its children on other
    /// threads ran, a future without the waits between its polls, and a GPU time without those inside on its stream.
    pub self_ns: i64,
    /// For [`SliceKind::GpuScope`], how long it took, if [`duration_ns`](Self::duration_ns) is less or more, so that it nests
    /// with others on its track. Tables count this time.
    pub measured_ns: Option<i64>,
    /// For [`SliceKind::GpuScope`], how far its start may be off, if it was measured.
    pub uncertainty_ns: Option<i64>,
    /// For [`SliceKind::GpuScope`], how far it was moved, if that is more than its uncertainty.
    pub moved_ns: Option<i64>,
    /// Its kind.
    pub kind: SliceKind,
    /// On the CPU, the index of the scope that called it, which may be on another track and may end before its child. On
    /// the GPU, the index of the CPU slice that launched it.
    pub parent: Option<u32>,
    /// How it ended.
    pub ending: SliceEnding,
    /// The index of the category that a file gives it; none for a scope, which files call `cpu_op`.
    pub category: Option<u32>,
    /// The index of the shapes that were recorded for it.
    pub shapes: Option<u32>,
    /// Host bytes that it allocated without its children, if they were recorded.
    pub allocated_bytes: Option<u64>,
    /// Device bytes in use at its end less those at its start, without its children, if they were recorded.
    pub device_bytes: Option<i64>,
    /// The index of its [`SliceDetails`], if there are any.
    pub details: Option<u32>,
    /// For [`SliceKind::GpuWork`], the index of what it did, if that was recorded.
    pub work: Option<u32>,
    /// For [`SliceKind::GpuWork`], the index of the call that launched it, if that was recorded.
    pub launch: Option<u32>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

impl Slice {
    /// Returns how long it took, as tables count it.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        self.measured_ns.unwrap_or(self.duration_ns)
    }

    /// Returns `true` for what is on a stream.
    pub(crate) const fn is_on_gpu(&self) -> bool {
        self.kind.is_on_gpu()
    }

    /// Returns `true` unless it is a GPU time without a place on its stream: its start is not known, or there is no room for
    /// it. Tables count it, and files that show single scopes leave it out; its start is that of its scope.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.duration_ns > 0 || self.total_ns() <= 0
    }
}

/// What is known of some slices only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceDetails {
    /// The scopes around it, innermost first, as `src/model.rs(51): matmul;src/main.rs(10): main`.
    pub call_stack: Option<Arc<str>>,
    /// The native stack it was opened in, as the standard library prints it.
    pub native_stack: Option<Arc<str>>,
    /// The memory that it and its children used.
    pub memory: Option<MemoryUse>,
    /// Host bytes that it allocated less those that it freed, without its children.
    pub own_host_net: i64,
    /// Why its GPU time is missing, if it was to have one.
    pub no_gpu_time: Option<Arc<str>>,
    /// `true` if CPU times were not recorded when it began: tables count it as a call without them. Only a window's time line
    /// for its tables has such slices.
    #[doc(hidden)]
    pub is_untimed: bool,
    /// The time of all polls of a future, those too that have no slice because they were dropped. Only a window's time line
    /// for its tables has it.
    #[doc(hidden)]
    pub polled_ns: Option<i64>,
    /// `true` if `cuda::bind_stream` bound streams to it while it was open. Its GPU time, if it has one, is the sum of its times
    /// on them.
    pub is_bound: bool,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A wait for a stream, an event or a device, as CUPTI recorded it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// The rank of the process in its job.
    pub rank: Option<u64>,
    /// The index of its name in [`Timeline::names`], such as `Stream Sync`.
    pub name: u32,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub duration_ns: i64,
    /// What waited for which stream of which device.
    pub work: GpuWork,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A time in which the kernels, copies and fills of a process were not recorded. It displays as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelGap {
    /// The rank of the process in its job.
    pub rank: Option<u64>,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub duration_ns: i64,
    /// Why they were not recorded, and what to do about it.
    pub reason: Arc<str>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

impl fmt::Display for KernelGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&not_recorded(self.duration_ns, 1, &self.reason))
    }
}

/// Says that kernels were not recorded for so long, in so many gaps of one reason.
pub(crate) fn not_recorded(ns: i64, gaps: usize, reason: &str) -> String {
    let length = units::time(ns as f64);
    let times = match gaps {
        0 | 1 => String::new(),
        gaps => format!(" in all, {gaps} times"),
    };
    format!("kernels, copies and fills were not recorded for {length}{times}: {reason}")
}

/// A device of a time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The rank of the process that used it.
    pub rank: Option<u64>,
    /// The ordinal of the device in that process.
    pub ordinal: u32,
    /// Its properties.
    pub properties: DeviceProperties,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// Processes of a job that have collectives together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessGroup {
    /// The name, which need not say anything: `0`.
    pub name: String,
    /// The ranks of its processes in the job.
    pub ranks: Vec<u64>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// A call of CUDA that launched work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Launch {
    /// The index of the track of its thread.
    pub track: u32,
    /// The index of its name in [`Timeline::names`], such as `cuLaunchKernel`.
    pub name: u32,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub duration_ns: i64,
    /// The index of the slice that it was made for: the innermost one around it, or one that a handle or the launch hook
    /// named, which may be of another thread.
    pub parent: Option<u32>,
    /// How long before it began its thread had entered the handle of the parent; 0 if the launch hook named the parent. `None`
    /// if the parent is the innermost slice.
    pub since_entered_ns: Option<i64>,
    /// The number that connects it with its work.
    pub correlation: u32,
    /// The index of its slice, if it is also a call that tables count, as in files of PyTorch.
    pub slice: Option<u32>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The kind of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SliceKind {
    /// A scope on a thread.
    #[default]
    Call,
    /// A poll of a future; its parent is the future. It is no call.
    FuturePoll,
    /// A future from its first poll to its end.
    AsyncCall,
    /// The GPU time of a scope. It belongs to the call of its parent, which has the same name, unless something else than
    /// the profiler measured it.
    GpuScope,
    /// A kernel, a copy, or other work of its own name that its parent launched.
    GpuWork,
    /// A range on a stream that the program named, from the beginning of its first work to the end of its last one, as
    /// PyTorch writes it (`gpu_user_annotation`). It is no work: no total has its length.
    GpuRange,
}

impl SliceKind {
    /// Returns `true` for what is on a stream.
    #[must_use]
    pub const fn is_on_gpu(self) -> bool {
        matches!(self, Self::GpuScope | Self::GpuWork | Self::GpuRange)
    }
}

/// How a scope ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SliceEnding {
    /// It returned.
    #[default]
    Returned,
    /// A panic unwound through it.
    Panicked,
    /// It is a future that was dropped before it completed.
    Dropped,
}

/// A replay of a CUDA graph that was captured in a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replay {
    /// The index of the scope's name.
    pub name: u32,
    /// The index of the stream's track, if other work on the stream has one.
    pub track: Option<u32>,
    /// When the profiler noticed it; it ran some time before.
    pub noticed_ns: i64,
    /// How long it took, including the captured scopes inside.
    pub duration_ns: i64,
    /// How long it took without the captured scopes inside.
    pub self_ns: i64,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// One iteration of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The index of the track of the thread that ended it, if that is known.
    pub track: Option<u32>,
    /// The index of its slice, if it is also a call that tables count, as in files of PyTorch. All such slices have the name
    /// `ProfilerStep*`.
    pub slice: Option<u32>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// For how long a thread was on a processor, by samples: what it did between two of them is known as a sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorUse {
    /// The index of the track of the thread.
    pub track: u32,
    /// The samples, in the order of their times.
    pub samples: Vec<ProcessorSample>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// For how long a thread had been on a processor at one time. Neither sum ever becomes smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorSample {
    /// When the sample was taken.
    pub at_ns: i64,
    /// For how long the thread had been on a processor since the first sample.
    pub running_ns: i64,
    /// For how long it had been ready to run since then, while no processor was free for it.
    pub ready_ns: i64,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// What a thread did between two samples, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorSpan {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) running: i64,
    pub(crate) ready: i64,
}

impl ProcessorSpan {
    /// Returns the part of the span that a time in it is, in percent.
    #[cfg(any(feature = "export", feature = "trace"))]
    pub(crate) fn percent(&self, ns: i64) -> f64 {
        100.0 * ns as f64 / self.end.saturating_sub(self.start).max(1) as f64
    }
}

impl ProcessorUse {
    /// Returns the times between the samples.
    pub(crate) fn spans(&self) -> impl Iterator<Item = ProcessorSpan> {
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        let pairs = pairs.filter(|(from, to)| from.at_ns < to.at_ns);
        pairs.map(|(from, to)| {
            // A sample is not of one instant: the sums may exceed the time a little.
            let all = to.at_ns.saturating_sub(from.at_ns);
            let running = to.running_ns.saturating_sub(from.running_ns).clamp(0, all);
            let ready = to.ready_ns.saturating_sub(from.ready_ns);
            ProcessorSpan {
                start: from.at_ns,
                end: to.at_ns,
                running,
                ready: ready.clamp(0, all - running),
            }
        })
    }
}

/// A value over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// The name, as viewers show it.
    pub name: String,
    /// The unit, such as `bytes`; empty for a count.
    pub unit: String,
    /// The ordinal of the device, for a value of a device.
    pub device: Option<u32>,
    /// Times and values, in the order of the times. Each value holds until the next one.
    pub samples: Vec<(i64, f64)>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

#[cfg(any(feature = "export", feature = "trace"))]
impl Counter {
    /// Returns the name with the device and the unit, for viewers that show nothing else: `GPU 0 power (W)`.
    pub(super) fn title(&self) -> String {
        let device = self.device;
        let device = device.map_or_else(String::new, |ordinal| format!("GPU {ordinal} "));
        if self.unit.is_empty() {
            format!("{device}{}", self.name)
        } else {
            format!("{device}{} ({})", self.name, self.unit)
        }
    }
}
