//! The time line, as plain data.

#[cfg(feature = "export")]
use std::collections::HashMap;
use std::sync::Arc;

use crate::gpu_work::GpuWork;
#[cfg(feature = "export")]
use crate::report::call_tree::is_on_gpu;

/// The scopes on the threads of a program, and their work on the streams of its devices, with their times.
///
/// All formats that show single scopes are written from it: it comes from a [`Trace`](crate::Trace), or from a file that
/// another program wrote. It is plain data without ties to the running program.
///
/// Times are whole nanoseconds since [`start_unix_ns`](Self::start_unix_ns).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
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
    /// Kernels, copies and other work, for [`Slice::work`].
    pub work: Vec<GpuWork>,
    /// The calls of CUDA that launched work, in the order of their starts; [`Slice::launch`] is an index.
    pub launches: Vec<Launch>,
    /// Replays of CUDA graphs. It is not known when they ran.
    pub replays: Vec<Replay>,
    /// The steps of the program in their order.
    pub steps: Vec<Step>,
    /// Values over time, such as the memory in use.
    pub counters: Vec<Counter>,
    /// Scopes, GPU times and kernels that are missing: the reason, and how many. The number is zero if it is not known. The
    /// text follows the number, as in “3 scopes came after the window was full”.
    pub missing: Vec<(String, u64)>,
}

#[cfg(feature = "export")]
impl Timeline {
    /// Returns the slice that a launch or a step is, if it is on a thread.
    pub(in crate::report) fn slice_of(&self, index: Option<u32>) -> Option<u32> {
        let slice = self.slices.get(index? as usize)?;
        let has_track = (slice.track as usize) < self.tracks.len();
        index.filter(|_| has_track && !is_on_gpu(slice))
    }

    /// Returns the numbers of the steps that are slices.
    pub(in crate::report) fn numbers_of_steps(&self) -> HashMap<u32, u64> {
        let steps = self.steps.iter();
        steps
            .filter_map(|step| Some((self.slice_of(step.slice)?, step.number)))
            .collect()
    }
}

/// The name of slices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SliceName {
    /// The whole name.
    pub text: Arc<str>,
    /// The name as viewers show it where there is little space: the end of the name, as much of it as no other name ends
    /// with.
    /// Empty if that is the whole name.
    pub short: Arc<str>,
    /// The source location as `file:line`; empty if it is not known.
    pub location: Arc<str>,
}

/// A thread or a stream.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
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
#[non_exhaustive]
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
    /// For [`SliceKind::GpuWork`], the index of what it did, if that was recorded.
    pub work: Option<u32>,
    /// For [`SliceKind::GpuWork`], the index of the call that launched it, if that was recorded.
    pub launch: Option<u32>,
}

impl Slice {
    /// Returns how long it took, as tables count it.
    pub(in crate::report) fn total_ns(&self) -> i64 {
        self.measured_ns.unwrap_or(self.duration_ns)
    }
}

/// A call of CUDA that launched work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Launch {
    /// The index of the track of its thread.
    pub track: u32,
    /// The index of its name in [`Timeline::names`], such as `cuLaunchKernel`.
    pub name: u32,
    /// When it began.
    pub start_ns: i64,
    /// How long it took.
    pub duration_ns: i64,
    /// The index of the innermost slice around it.
    pub parent: Option<u32>,
    /// The number that connects it with its work.
    pub correlation: u32,
    /// The index of its slice, if it is also a call that tables count, as in files of PyTorch.
    pub slice: Option<u32>,
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
    /// The GPU time of a scope. It belongs to the call of its parent, which has the same name.
    GpuScope,
    /// A kernel, a copy, or other work of its own name that its parent launched.
    GpuWork,
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
#[non_exhaustive]
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
}

/// One iteration of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// The index of its slice, if it is also a call that tables count, as in files of PyTorch. All such slices have the name
    /// `ProfilerStep*`.
    pub slice: Option<u32>,
}

/// A value over time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counter {
    /// The name, as viewers show it.
    pub name: String,
    /// The unit, such as `bytes`; empty for a count.
    pub unit: String,
    /// The ordinal of the device, for a value of a device.
    pub device: Option<u32>,
    /// Times and values, in the order of the times. Each value holds until the next one.
    pub samples: Vec<(i64, f64)>,
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
