//! Traces in the format of `chrome://tracing` as PyTorch writes it, for Perfetto, TensorBoard's trace plugin and HTA.
//!
//! Events are written one by one. Memory is needed only for GPU times, some hundred bytes each, in order to place them
//! on their streams.

mod annotation;
mod counters;
mod header;
mod host;
mod launches;
mod memory;
mod names;
mod occupancy;
mod parents;
mod replays;
mod stand_ins;
mod tensorboard;
mod tracks;
mod work;
mod work_fields;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use self::header::Header;
use self::launches::Launches;
use self::names::Names;
use self::parents::Parents;
use self::tracks::Tracks;
use self::work_fields::WorkNames;
use super::counters::InFlight;
use super::times::Times;
use super::track_names::device_names;
use super::{has_start, whole};
use crate::cuda::{DeviceProperties, GpuRecord, device_properties};
use crate::report::export::ExportError;
use crate::report::export::chrome::event_writer::{EventWriter, Track};
use crate::report::export::chrome::times::shared_base;
use crate::report::export::file::ExportFile;
use crate::report::rank::Rank;
use crate::session::Trace;
pub use tensorboard::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};

impl Trace {
    /// Writes the trace for Perfetto (<https://ui.perfetto.dev>), `chrome://tracing` and HTA; compressed if the name
    /// ends with `.gz`. The file appears under its name when it is complete, and replaces a file of that name. For
    /// TensorBoard's trace plugin, use [`tensorboard_trace_handler`]: the plugin shows no GPU times of operators in the
    /// files of this method.
    ///
    /// | in the trace | meaning |
    /// |---|---|
    /// | a slice of a thread | a scope, or a poll of a future |
    /// | a slice of `futures N` | a future, from its first poll to its end |
    /// | a slice of a stream, or of its scopes, `gpu_user_annotation` | the GPU time of a scope |
    /// | `kernel`, `gpu_memcpy`, `gpu_memset` | what ran on the device, with the fields that PyTorch writes |
    /// | a slice of a thread, `cuda_runtime` | the call of CUDA that launched it |
    /// | an arrow | leads from the call to the first work that it launched |
    /// | a slice of `waits N`, `cuda_sync` | a wait for a stream, an event or the device |
    /// | `ProfilerStep#N` | a step |
    ///
    /// Slices of a function show the end of its path, such as `Trainer::forward`, and more of it if two names of the
    /// program would look alike. The whole name is in the argument `full name`. Names that the program chose are shown
    /// unchanged. A call of the driver has the name of the runtime's call that does its work, which the tools know:
    /// `cudaLaunchKernel` for `cuLaunchKernel`. The argument `call` is the real one.
    ///
    /// Kernels have `blocks per SM`, `warps per SM` and `est. achieved occupancy %`, computed from the launch and from the
    /// properties of the device (`deviceProperties` in the head of the file) as PyTorch does: a kernel that needs more shared
    /// memory than a block gets by default is counted with what it asked for. The occupancy is that of a kernel that has the
    /// device to itself; it is not measured. Values that the driver does not know are left out.
    ///
    /// In windows without [CUPTI](crate::report::GpuWork), scopes are measured, not kernels, and the tools still count kernels.
    /// The events that they read as kernels are the self times of scopes on the GPU, and have `"scope": true`. Each has a
    /// launch (`cudaLaunchKernel`, of length zero) where the scope began, or where the preceding scope inside it had ended.
    /// Their totals are those of the scopes.
    ///
    /// The lengths of GPU times are exact. Their starts are known to some microseconds (`uncertainty_ns`): they are
    /// moved by up to that much, so that the times on each stream nest or follow each other, and none starts before its
    /// scope. Kernels, copies and fills are never moved: they have the track of their stream, and the times of scopes have
    /// one below it. If a start is moved further, `moved_ns` says by how much. A time that does not fit inside its parent
    /// within its uncertainty is shortened; its full length is in `ns`. A time that overlaps others by more is drawn
    /// beside them. A GPU time of zero, or with an unknown start, is not drawn; its scope has `cuda_ns`. The time
    /// of a scope without those inside on its stream is in `self_ns`, as tables count it.
    ///
    /// Where the nesting of slices does not show the parent of a scope or its self time, because a parent is on another
    /// thread or a guard was dropped out of order, the scope has `parent`, the `External id` of its parent (0 for none),
    /// and `self_ns`. The command line reads them: its table of the file has the times and calls of
    /// [`key_averages`](Self::key_averages).
    ///
    /// `ProfilerStep` in the name of a scope is written as `Profiler Step`, because the tools would treat the scope as
    /// a step.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let ((), trace) = Profile::builder().run(|_| {
    ///     let _scope = scope!("forward");
    /// });
    /// let trace = trace?;
    /// let path = std::env::temp_dir().join(format!("trace-{}.json.gz", std::process::id()));
    /// trace.export_chrome_trace(&path)?;
    /// assert!(profiler_trace_validator::validate(&path)?.is_empty());
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        export(self, path.as_ref(), LaunchCategory::CudaRuntime)
    }
}

fn export(trace: &Trace, path: &Path, launches: LaunchCategory) -> Result<(), ExportError> {
    let write = || {
        let file = ExportFile::create(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rank = Rank::of_process();
        write_trace(trace, file, &name, rank, launches)?.finish()
    };
    write().map_err(|source| ExportError::io(path, source))
}

fn write_trace<W: Write>(
    trace: &Trace,
    mut out: W,
    name: &str,
    rank: Option<Rank>,
    launches: LaunchCategory,
) -> io::Result<W> {
    let opened = trace.timeline.unix_ns(trace.meta.opened);
    let times = Times::new(&trace.timeline, shared_base(opened));
    let tracks = Tracks::new(trace);
    let devices = device_names(tracks.devices().into_iter());
    let head = Header {
        trace,
        name,
        base_ns: times.base_ns,
        unplaced: trace
            .gpu
            .iter()
            .filter(|gpu| gpu.loss.is_none() && gpu.start.is_none())
            .count(),
        devices: &devices,
        properties: device_properties(),
        rank,
    };
    head.write(&mut out)?;
    let mut writer = TraceWriter::new(trace, times, tracks, EventWriter::new(out), launches);
    writer.write_events(&devices)?;
    let mut out = writer.events.into_inner();
    out.write_all(b"\n]}\n")?;
    Ok(out)
}

/// Returns `true` if a GPU time is drawn: its start is known and its length is not zero. Perfetto attaches arrows to slices
/// of length zero, if there are any.
fn is_drawn(gpu: &GpuRecord) -> bool {
    has_start(gpu) && whole(gpu.ns) > 0
}

/// A trace being written.
struct TraceWriter<'t, W> {
    trace: &'t Trace,
    times: Times<'t>,
    tracks: Tracks,
    names: Names,
    parents: Parents,
    events: EventWriter<W>,
    launch_category: &'static str,
    /// For each GPU time, the track of its scope.
    track_of_gpu: Vec<u64>,
    /// The device for the memory of scopes that have no GPU time.
    memory_device: u64,
    /// The properties of the devices, by ordinal.
    properties: &'static [DeviceProperties],
    extent: (i64, i64),
    in_flight: InFlight,
    launches: Launches,
    /// The track of work whose launch was not recorded.
    unknown_launches: Option<Track>,
    work_names: WorkNames,
}

impl<'t, W: Write> TraceWriter<'t, W> {
    fn new(
        trace: &'t Trace,
        times: Times<'t>,
        tracks: Tracks,
        events: EventWriter<W>,
        launches: LaunchCategory,
    ) -> Self {
        let opened = times.of_ticks(trace.meta.opened);
        let ends = trace.gpu.iter().filter(|gpu| has_start(gpu));
        let ends = ends.map(|gpu| {
            times
                .of_unix(gpu.start.unwrap_or_default())
                .saturating_add(whole(gpu.ns))
        });
        let work = trace.work.work.iter().filter_map(|work| work.span);
        let ends = ends.chain(work.map(|(_, end)| times.of_unix(end)));
        let closed = ends.fold(times.of_ticks(trace.meta.closed), i64::max);
        Self {
            trace,
            times,
            names: Names::new(trace),
            parents: Parents::new(trace, times),
            events,
            launch_category: launches.as_str(),
            track_of_gpu: vec![0; trace.gpu.len()],
            memory_device: tracks.devices().first().copied().unwrap_or_default(),
            tracks,
            properties: device_properties(),
            extent: (opened, closed),
            in_flight: InFlight::new(opened, closed),
            launches: Launches::new(trace, times),
            unknown_launches: None,
            work_names: WorkNames::new(trace),
        }
    }

    fn write_events(&mut self, devices: &[String]) -> io::Result<()> {
        self.tracks.write_processes(&mut self.events, devices)?;
        self.write_steps()?;
        self.write_scopes()?;
        if self.trace.work.is_recorded {
            self.write_streams()?;
            self.write_waits()?;
        } else {
            self.write_stand_ins()?;
        }
        self.write_replays()?;
        self.write_counters()?;
        self.tracks.write_names(&mut self.events)
    }
}
