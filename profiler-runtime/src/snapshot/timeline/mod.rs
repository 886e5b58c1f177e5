//! A window as plain data.

mod details;
mod gpu;
mod missing;
mod order;
mod own_memory;
mod work;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use profiler_host::process::platform::process_id;
use profiler_host::process::program;
use profiler_host::rank::Rank;
use profiler_report::internal::{NestedTrack, OverlapTracks};
use profiler_report::{
    Counter, Device, GroupBy, KernelGap, ProcessorSample, ProcessorUse, Slice, SliceEnding,
    SliceKind, SliceName, Step, Timeline, Track, TrackKind,
};

pub(super) use self::missing::why_empty;
use self::order::in_order;
use self::own_memory::{Used, own_memory};
use super::window::counters::{InFlight, memory_samples};
use super::window::gpu_counters::gpu_counters;
use super::window::short_names::short_names;
use super::window::times::Times;
use super::window::track_names::thread_name;
use crate::cuda::device_properties;
use crate::session::{Event, NONE, RecordEnding, RecordKind, ScopeRecord, Trace};

impl Trace {
    /// Returns the window as plain data, from which all formats are written that show single scopes.
    ///
    /// The lengths of GPU times are exact. Their starts are known to some microseconds: they are moved within their
    /// uncertainty, so that the times on each stream nest or follow each other and none starts before its scope. A GPU time
    /// whose start is not known, or which is a sum of several, is a slice of length zero where its scope began, and is counted as
    /// missing too.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let ((), trace) = Profile::builder().run(|_| {
    ///     let _outer = scope!("outer");
    ///     let _inner = scope!("inner");
    /// });
    /// let timeline = trace?.timeline();
    /// # if profiler_runtime::is_enabled() {
    /// let [outer, inner] = &timeline.slices[..] else {
    ///     panic!("two slices")
    /// };
    /// assert_eq!(&*timeline.names[inner.name as usize].text, "inner");
    /// assert_eq!((outer.parent, inner.parent), (None, Some(0)));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        let mut builder = Builder::new(self, Rank::of_process(), None);
        builder.add_slices();
        builder.add_waits();
        builder.add_memory();
        builder.add_gpu_samples();
        builder.add_processor();
        builder.finish()
    }
}

/// Returns the slices of a window for its tables: with those of scopes whose CPU times were not recorded, which tables count
/// as calls and files leave out, and with stacks only if rows are grouped by them.
pub(super) fn for_tables(trace: &Trace, by: GroupBy) -> Timeline {
    let mut builder = Builder::new(trace, None, Some(by));
    builder.add_slices();
    builder.finish()
}

/// Returns the times in which kernels were not recorded.
fn kernel_gaps(trace: &Trace, start_unix_ns: i64, rank: Option<Rank>) -> Vec<KernelGap> {
    let times = Times::new(&trace.clock_line, start_unix_ns);
    let gaps = trace.work.gaps.iter().map(|gap| {
        let (start, end) = (times.of_ticks(gap.span.0), times.of_ticks(gap.span.1));
        KernelGap {
            rank: rank.map(|rank| rank.rank),
            start_ns: start,
            duration_ns: end - start,
            reason: gap.reason.as_str().into(),
            non_exhaustive: (),
        }
    });
    gaps.collect()
}

/// A time line under construction.
struct Builder<'t> {
    trace: &'t Trace,
    /// How the rows of the tables that it is for are grouped; `None` for files.
    for_tables: Option<GroupBy>,
    times: Times<'t>,
    timeline: Timeline,
    /// The slice of each record; [`NONE`] for a record without one.
    slice_of: Vec<u32>,
    /// The names of the time line, and for each name of the program and of the work its index there, or [`NONE`].
    names: Vec<NameId>,
    index_of_name: [Vec<u32>; 2],
    shapes: HashMap<String, u32>,
    /// The texts of stacks. Many scopes have the same.
    stacks: HashSet<Arc<str>>,
    /// The process, which all tracks have in common.
    process: Track,
}

/// The origin of a name, and its number there.
#[derive(Clone, Copy)]
enum NameId {
    /// A name of the program.
    Scope(u32),
    /// A kernel, or a function of CUDA.
    Work(u32),
}

/// The tracks of a thread.
#[derive(Default)]
struct ThreadTracks {
    nested: NestedTrack,
    lanes: OverlapTracks<u32>,
}

impl<'t> Builder<'t> {
    fn new(trace: &'t Trace, rank: Option<Rank>, for_tables: Option<GroupBy>) -> Self {
        let start_unix_ns = trace.clock_line.unix_ns(trace.meta.opened);
        let program = program::name();
        let kernel_gaps = kernel_gaps(trace, start_unix_ns, rank);
        let mut builder = Self {
            trace,
            for_tables,
            times: Times::new(&trace.clock_line, start_unix_ns),
            timeline: Timeline {
                title: program.clone(),
                start_unix_ns,
                missing: missing::missing(trace, &kernel_gaps),
                has_kernels: trace.has_kernels(),
                kernel_gaps,
                world_size: rank.and_then(|rank| rank.world_size),
                cycle: Some(trace.meta.cycle),
                step_num: Some(trace.meta.step_num),
                metadata: trace.meta.metadata.clone(),
                slices: Vec::with_capacity(trace.scopes.len()),
                ..Timeline::default()
            },
            slice_of: vec![NONE; trace.scopes.len()],
            names: Vec::new(),
            index_of_name: [trace.names.len(), trace.work.names.len()].map(|all| vec![NONE; all]),
            shapes: HashMap::new(),
            stacks: HashSet::new(),
            process: Track {
                process: process_id().into(),
                process_name: program,
                rank: rank.map(|rank| rank.rank),
                ..Track::default()
            },
        };
        for thread in &trace.threads {
            builder.add_track(Track {
                kind: TrackKind::HostThread,
                name: thread_name(thread),
                id: thread.id,
                ..Track::default()
            });
        }
        builder
    }

    fn add_track(&mut self, track: Track) -> u32 {
        let Track {
            process,
            process_name,
            rank,
            ..
        } = self.process.clone();
        self.timeline.tracks.push(Track {
            process,
            process_name,
            rank,
            ..track
        });
        index_of(self.timeline.tracks.len() - 1)
    }

    /// Returns the index of a name; `id` counts the names of the program.
    fn name(&mut self, id: u32) -> u32 {
        self.index_of_name(NameId::Scope(id))
    }

    fn index_of_name(&mut self, id: NameId) -> u32 {
        let (all, id_there) = match id {
            NameId::Scope(id) => (0, id),
            NameId::Work(id) => (1, id),
        };
        let next = index_of(self.names.len());
        let Some(index) = self.index_of_name[all].get_mut(id_there as usize) else {
            // Viewers show a slice without a name as unknown.
            return NONE;
        };
        if *index == NONE {
            *index = next;
            self.names.push(id);
        }
        *index
    }

    /// Adds all slices and the launches.
    fn add_slices(&mut self) {
        self.add_scopes();
        let streams = self.add_gpu();
        self.add_work(&streams);
        self.add_reported();
    }

    fn add_scopes(&mut self) {
        let scopes = &self.trace.scopes;
        let parents = self.parents();
        let order = in_order(scopes, &parents);
        let memory = own_memory(self.trace, &order);
        let mut threads: Vec<ThreadTracks> = Vec::new();
        threads.resize_with(self.trace.threads.len(), ThreadTracks::default);
        let mut futures = OverlapTracks::default();
        for index in order {
            let scope = &scopes[index as usize];
            if !scope.has_cpu && self.for_tables.is_none() {
                continue;
            }
            let start = self.times.of_ticks(scope.start);
            let end = self.times.of_ticks(scope.end());
            let track = match scope.kind {
                RecordKind::Future { .. } => futures.take(start, end, |number| {
                    self.add_track(Track {
                        kind: TrackKind::Futures,
                        name: format!("futures {number}"),
                        ..Track::default()
                    })
                }),
                _ => self.thread_track(&mut threads, scope.thread, (start, end)),
            };
            let used = memory.get(index as usize).copied().unwrap_or_default();
            self.add_scope(index, track, (start, end), &parents, used);
        }
    }

    /// Returns the parent of each record: that of a poll is its future, if the window has it.
    fn parents(&self) -> Vec<u32> {
        let scopes = (0..).zip(&self.trace.scopes);
        let future = |(index, scope): (u32, &ScopeRecord)| match scope.kind {
            RecordKind::Future { .. } => Some((scope.serial, index)),
            _ => None,
        };
        let futures: HashMap<u64, u32> = scopes.clone().filter_map(future).collect();
        let parent = |(index, scope): (u32, &ScopeRecord)| {
            match scope.kind {
                RecordKind::Poll { future } => futures.get(&future).copied(),
                _ => None,
            }
            .unwrap_or(self.trace.nodes[index as usize].parent)
        };
        scopes.map(parent).collect()
    }

    fn thread_track(
        &mut self,
        threads: &mut [ThreadTracks],
        thread: u32,
        (start, end): (i64, i64),
    ) -> u32 {
        let Some(tracks) = threads.get_mut(thread as usize) else {
            return 0;
        };
        if tracks.nested.add(start, end) {
            return thread;
        }
        tracks.lanes.take(start, end, |number| {
            let mut track = self.timeline.tracks[thread as usize].clone();
            track.name = format!("thread {}, overlapping {number}", track.id);
            self.add_track(track)
        })
    }

    fn add_scope(
        &mut self,
        index: u32,
        track: u32,
        (start, end): (i64, i64),
        parents: &[u32],
        used: Used,
    ) {
        let event = Event::new(self.trace, index as usize);
        let scope = event.record();
        let own = self.trace.nodes[index as usize].own;
        let inside = self
            .times
            .of_length(scope.elapsed.max(0).saturating_sub(own.max(0)));
        // A parent may have no slice: it was recorded without its CPU time.
        let mut around = parents[index as usize];
        while around != NONE && self.slice_of[around as usize] == NONE {
            around = parents[around as usize];
        }
        let parent = self.slice_of.get(around as usize).copied();
        let slice = Slice {
            track,
            name: self.name(scope.name),
            start_ns: start,
            duration_ns: end - start,
            self_ns: (end - start - inside).clamp(0, end - start),
            kind: match scope.kind {
                RecordKind::Scope => SliceKind::Call,
                RecordKind::Poll { .. } => SliceKind::FuturePoll,
                RecordKind::Future { .. } => SliceKind::AsyncCall,
            },
            parent,
            ending: match scope.ending {
                RecordEnding::Returned => SliceEnding::Returned,
                RecordEnding::Panicked => SliceEnding::Panicked,
                RecordEnding::Dropped => SliceEnding::Dropped,
            },
            shapes: event.shapes().map(|shapes| self.shapes(shapes)),
            allocated_bytes: used.allocated,
            device_bytes: used.device,
            details: self.details(event, used),
            ..Slice::default()
        };
        self.slice_of[index as usize] = index_of(self.timeline.slices.len());
        self.timeline.slices.push(slice);
    }

    /// Returns the index of the text of a scope's shapes.
    fn shapes(&mut self, shapes: &[Box<[usize]>]) -> u32 {
        let text = format!("{shapes:?}");
        if let Some(index) = self.shapes.get(&text) {
            return *index;
        }
        let index = index_of(self.timeline.shapes.len());
        self.timeline.shapes.push(text.clone());
        self.shapes.insert(text, index);
        index
    }

    fn add_in_flight(&mut self, in_flight: &InFlight) {
        let samples = in_flight.samples();
        self.add_counter(
            "GPU scopes in flight",
            "",
            samples.map(|(at, count)| (at, count as f64)),
        );
    }

    /// Adds the memory in use.
    fn add_memory(&mut self) {
        let times = self.times;
        let end = times.of_ticks(self.trace.meta.closed);
        let samples = memory_samples(self.trace, end, |event| {
            times.of_ticks(event.record().end())
        });
        let host = samples
            .iter()
            .map(|(at, memory)| (*at, memory.host_total as f64));
        self.add_counter("host memory", "bytes", host);
        let used = samples
            .iter()
            .filter_map(|(at, memory)| Some((*at, memory.device_total? as f64)));
        self.add_counter("CUDA memory", "bytes", used);
        let reserved = samples
            .iter()
            .filter_map(|(at, memory)| Some((*at, memory.device_reserved? as f64)));
        self.add_counter("CUDA memory reserved", "bytes", reserved);
    }

    fn add_gpu_samples(&mut self) {
        let times = self.times;
        let end = times.of_ticks(self.trace.meta.closed);
        let counters = gpu_counters(self.trace, end, |at| times.of_unix(at));
        self.timeline.counters.extend(counters);
    }

    /// Adds for how long threads were on a processor.
    fn add_processor(&mut self) {
        let times = self.times;
        let whole = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for (track, samples) in (0..).zip(&self.trace.processor) {
            let Some(first) = samples.first().map(|first| first.times) else {
                continue;
            };
            let samples = samples.iter().map(|sample| ProcessorSample {
                at_ns: times.of_ticks(sample.at),
                running_ns: whole(sample.times.running_ns.saturating_sub(first.running_ns)),
                ready_ns: whole(sample.times.ready_ns.saturating_sub(first.ready_ns)),
                non_exhaustive: (),
            });
            self.timeline.processor.push(ProcessorUse {
                track,
                samples: samples.collect(),
                non_exhaustive: (),
            });
        }
    }

    /// Adds a counter, unless it has no values.
    fn add_counter(&mut self, name: &str, unit: &str, samples: impl Iterator<Item = (i64, f64)>) {
        let samples: Vec<(i64, f64)> = samples.collect();
        if !samples.is_empty() {
            self.timeline.counters.push(Counter {
                name: name.to_owned(),
                unit: unit.to_owned(),
                device: None,
                samples,
                non_exhaustive: (),
            });
        }
    }

    /// Adds the properties of the devices that are used.
    fn add_devices(&mut self) {
        let tracks = self.timeline.tracks.iter();
        let waits = self.timeline.waits.iter();
        let used = tracks.filter_map(|track| track.device);
        let used = used.chain(waits.map(|wait| wait.work.device));
        let ordinals: BTreeSet<u32> = used.collect();
        if ordinals.is_empty() {
            return;
        }
        let properties = device_properties();
        let devices = ordinals.into_iter().filter_map(|ordinal| {
            Some(Device {
                rank: self.process.rank,
                ordinal,
                properties: *properties.get(ordinal as usize)?,
                non_exhaustive: (),
            })
        });
        self.timeline.devices = devices.collect();
    }

    fn finish(mut self) -> Timeline {
        self.add_devices();
        let threads = self.trace.threads.len();
        let steps = self.trace.steps.iter().map(|step| Step {
            number: step.number,
            start_ns: self.times.of_ticks(step.start),
            end_ns: self.times.of_ticks(step.end),
            track: Some(step.thread).filter(|thread| (*thread as usize) < threads),
            slice: None,
            non_exhaustive: (),
        });
        self.timeline.steps = steps.collect();
        let closed = self.times.of_ticks(self.trace.meta.closed);
        let slices = self.timeline.slices.iter();
        let ends = slices.map(|slice| slice.start_ns.saturating_add(slice.duration_ns));
        self.timeline.duration_ns = ends.fold(closed, i64::max);
        let short = short_names(&self.trace.names);
        let names = self.names.into_iter().map(|id| {
            let id = match id {
                NameId::Scope(id) => id,
                NameId::Work(id) => return work::name(self.trace, id),
            };
            let name = self.trace.names.get(id as usize);
            let short = short.get(id as usize).and_then(Option::as_deref);
            SliceName {
                text: self.trace.name_of(id).into(),
                short: short.unwrap_or_default().into(),
                location: name.map_or_else(Arc::default, |name| name.location.in_files().into()),
                non_exhaustive: (),
            }
        });
        self.timeline.names = names.collect();
        self.timeline
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the capacity of a window is less"
)]
fn index_of(index: usize) -> u32 {
    index as u32
}
