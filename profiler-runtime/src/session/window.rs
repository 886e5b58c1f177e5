//! Building a window from records.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::assemble;
use super::record::{RecordKind, ScopeRecord, ThreadInfo};
use super::ring::Lost;
use super::timeline::Timeline;
use super::trace::{Meta, NONE, Node, Step, Trace, Truncation};
use super::work::WindowWork;
use super::work_builder::{Around, WorkBuilder};
use super::work_check;
use super::{Activity, Options};
use crate::clock::{WallAnchor, clock};
use crate::config::Kernels;
use crate::cuda::nvml::ClosingSample;
use crate::cuda::{self, GpuRecord, Recording, Status, WorkLosses};
use crate::name;

/// Changes of activities that are remembered for one window.
const MAX_TOGGLES: usize = 4096;

/// The extent of a window: when it is open, and which records belong to it.
#[derive(Clone, Debug)]
pub(super) struct WindowSpec {
    pub(super) id: u64,
    pub(super) session: u64,
    pub(super) cycle: u64,
    pub(super) capacity: usize,
    pub(super) options: Options,
    /// Ticks of the clock.
    pub(super) opened: u64,
    /// Ticks of the clock; set when the window closes.
    pub(super) closed: Option<u64>,
    /// The activities that are recorded, each entry from its time on, in order.
    pub(super) toggles: Vec<(u64, Options)>,
    pub(super) first: WallAnchor,
    /// Losses up to the moment it opened.
    pub(super) lost_before: Lost,
    /// Launches and records of the devices that were lost up to that moment.
    pub(super) lost_work_before: WorkLosses,
    /// Losses up to the moment it closed. The window that follows it without a gap has the same in `lost_before`, so that
    /// each loss is counted in one of them.
    pub(super) lost_after: Lost,
    /// The sample that was asked for when it closed.
    pub(super) closing_sample: Option<ClosingSample>,
}

/// The state of a session when its window closed.
#[derive(Clone, Debug)]
pub(super) struct WindowClose {
    pub(super) cut_short: bool,
    pub(super) step_num: u64,
    pub(super) steps: Vec<StepRecord>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) last: WallAnchor,
    /// The period in which CUPTI recorded when the window closed.
    pub(super) recording: Option<Recording>,
}

/// A step, with the thread that ended it.
#[derive(Clone, Debug)]
pub(super) struct StepRecord {
    pub(super) number: u64,
    pub(super) thread: Option<Arc<ThreadInfo>>,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl WindowSpec {
    /// Returns `true` if a scope lies inside the window. A scope that begins at the moment the window closes belongs to
    /// the next one.
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        let closed = self.closed.unwrap_or(u64::MAX);
        start >= self.opened && start < closed && end <= closed
    }

    /// Returns `true` if a scope with this end may lie inside the window.
    fn may_contain(&self, end: u64) -> bool {
        end >= self.opened && end <= self.closed.unwrap_or(u64::MAX)
    }

    /// Returns `true` if any activity was recorded for scopes that began at `at`.
    pub(super) fn records_any(&self, at: u64) -> bool {
        self.records(Activity::Cpu, at) || self.records(Activity::Cuda, at)
    }

    /// Changes the recorded activities from `at` on. Returns `false` after too many changes; then everything is
    /// recorded.
    pub(super) fn toggle(&mut self, at: u64, options: Options) -> bool {
        if self
            .toggles
            .last()
            .is_some_and(|(_, last)| *last == options)
        {
            return true;
        }
        let is_possible = self.toggles.len() < MAX_TOGGLES;
        if is_possible {
            self.toggles.push((at, options));
        } else if self.toggles.len() == MAX_TOGGLES {
            self.toggles.push((at, self.options));
        }
        is_possible
    }

    /// Returns `true` if an activity was recorded for scopes that began at `at`.
    pub(super) fn records(&self, activity: Activity, at: u64) -> bool {
        let since = self.toggles.partition_point(|(since, _)| *since <= at);
        let options = since
            .checked_sub(1)
            .and_then(|place| self.toggles.get(place));
        options
            .map_or(self.options, |(_, options)| *options)
            .has(activity)
    }
}

/// The records of a window so far.
#[derive(Debug, Default)]
pub(super) struct WindowBuilder {
    scopes: Vec<ScopeRecord>,
    gpu: Vec<GpuRecord>,
    replays: Vec<GpuRecord>,
    pub(super) work: WorkBuilder,
    threads: Vec<Arc<ThreadInfo>>,
    /// The index in `threads` of each thread, by the address of its information.
    places: HashMap<usize, u32>,
    over_capacity: u64,
    handler_behind: u64,
    /// Scopes that could not be stored for lack of memory.
    no_memory: u64,
    /// Scopes that arrived too late for earlier windows of the session.
    pub(super) late: u64,
}

impl WindowBuilder {
    /// Returns the number of scopes.
    pub(super) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// Returns `true` if the window has scopes whose GPU times may not have been read.
    pub(super) fn has_cuda(&self) -> bool {
        self.scopes.iter().any(|scope| scope.cuda != 0)
    }

    /// Adds a scope. Returns `true` if it belongs to the window, even if there was no space for it.
    pub(super) fn add(
        &mut self,
        spec: &WindowSpec,
        thread: &Arc<ThreadInfo>,
        scope: &ScopeRecord,
    ) -> bool {
        if !spec.contains(scope.start, scope.end()) {
            return false;
        }
        if !spec.records_any(scope.start) {
            return true;
        }
        if self.scopes.len() >= spec.capacity {
            self.over_capacity += 1;
            return true;
        }
        if self.scopes.try_reserve(1).is_err() {
            self.no_memory += 1;
            return true;
        }
        let mut scope = scope.clone();
        scope.thread = self.place(thread);
        scope.has_cpu = spec.records(Activity::Cpu, scope.start);
        if !spec.records(Activity::Cuda, scope.start) {
            scope.cuda = 0;
        }
        self.scopes.push(scope);
        true
    }

    pub(super) fn add_gpu(&mut self, spec: &WindowSpec, gpu: &GpuRecord) {
        // The scope's start is not known here: unrelated GPU times are discarded when the window is complete. If memory
        // is short, the scope counts as one whose GPU time was not read.
        if spec.options.cuda && spec.may_contain(gpu.cpu_end) && self.gpu.try_reserve(1).is_ok() {
            self.gpu.push(*gpu);
        }
    }

    /// Discards GPU times of scopes outside the window before they use more memory than those inside, of which there
    /// are at most `capacity`. A scope that ended after `recent` may still arrive.
    pub(super) fn discard_unrelated_gpu(&mut self, spec: &WindowSpec, recent: u64) {
        if self.gpu.len() >= spec.capacity.saturating_mul(2) {
            // If memory is short, the next call tries again; until then the GPU times stay.
            let _ = assemble::discard_unrelated(&self.scopes, &mut self.gpu, recent);
        }
    }

    pub(super) fn add_replay(&mut self, spec: &WindowSpec, replay: &GpuRecord) {
        if !spec.records(Activity::Cuda, replay.cpu_end) {
            return;
        }
        if self.replays.len() >= spec.capacity {
            self.over_capacity += 1;
        } else if self.replays.try_reserve(1).is_err() {
            self.no_memory += 1;
        } else {
            self.replays.push(*replay);
        }
    }

    fn place(&mut self, thread: &Arc<ThreadInfo>) -> u32 {
        let threads = &mut self.threads;
        let known = self.places.entry(Arc::as_ptr(thread).addr());
        *known.or_insert_with(|| {
            threads.push(Arc::clone(thread));
            u32::try_from(threads.len() - 1).unwrap_or(NONE)
        })
    }

    /// Drops all records and keeps the counts, because the handlers are behind.
    pub(super) fn drop_records(&mut self) {
        let (scopes, work) = self.clear_records();
        self.handler_behind += scopes;
        self.work.lost.handler_behind += work;
    }

    /// Drops all records and keeps the counts. Returns the number of scopes and replays dropped, and that of launches and
    /// records of their work.
    fn clear_records(&mut self) -> (u64, u64) {
        let scopes = self.scopes.iter();
        let scopes = scopes.filter(|scope| !matches!(scope.kind, RecordKind::Poll { .. }));
        let given_up = scopes.count() + self.replays.len();
        self.scopes = Vec::new();
        self.gpu = Vec::new();
        self.replays = Vec::new();
        self.threads = Vec::new();
        self.places = HashMap::new();
        (given_up as u64, self.work.clear())
    }

    /// Takes over the counts of an earlier window.
    pub(super) fn take_counts(&mut self, before: &Self) {
        self.over_capacity += before.over_capacity;
        self.handler_behind += before.handler_behind;
        self.no_memory += before.no_memory;
        self.late += before.late;
        self.work.lost.add(before.work.lost);
    }

    /// Sorts and links the records. Returns `None` if memory is short.
    fn link(&mut self) -> Option<Vec<Node>> {
        assemble::discard_unrelated(&self.scopes, &mut self.gpu, u64::MAX)?;
        assemble::link(&mut self.scopes, &mut self.gpu)
    }

    /// Builds the trace of a complete window.
    pub(super) fn into_trace(mut self, spec: &WindowSpec, closing: WindowClose) -> Trace {
        let nodes = self.link().unwrap_or_else(|| {
            let (scopes, work) = self.clear_records();
            self.no_memory += scopes;
            self.work.lost.no_memory += work;
            Vec::new()
        });
        let lost = spec.lost_after.since(spec.lost_before);
        let steps = closing.steps.into_iter().map(|step| Step {
            number: step.number,
            thread: step.thread.map_or(NONE, |thread| self.place(&thread)),
            start: step.start,
            end: step.end,
        });
        let steps = steps.collect();
        let unread = self
            .scopes
            .iter()
            .zip(&nodes)
            .filter(|(scope, node)| scope.cuda != 0 && node.gpu == NONE)
            .count();
        let options = spec
            .toggles
            .iter()
            .map(|(_, options)| *options)
            .reduce(|all, options| Options {
                cpu: all.cpu || options.cpu,
                cuda: all.cuda || options.cuda,
                ..all
            })
            .unwrap_or(spec.options);
        let has_cuda = !self.gpu.is_empty() || !self.replays.is_empty() || unread > 0;
        let timeline = Timeline::through(spec.first, closing.last);
        let around = Around {
            scopes: &self.scopes,
            nodes: &nodes,
            threads: &self.threads,
            line: timeline,
        };
        let mut work = self.work.build(&around);
        describe(&mut work, spec, closing.recording);
        work.notes
            .extend(work_check::check(&work, &nodes, &self.gpu).note());
        let expects_cuda = options.cuda && options.expects_cuda && !self.scopes.is_empty();
        let no_cuda_reason =
            (expects_cuda && !has_cuda).then(|| no_cuda_reason(&cuda::known_status()));
        let closed = spec.closed.unwrap_or(spec.opened);
        let gpu_samples = cuda::nvml::samples_between(
            spec.options.gpu_samples,
            (timeline.unix_ns(spec.opened), timeline.unix_ns(closed)),
            (spec.opened, closed),
        );
        Trace {
            scopes: self.scopes,
            nodes,
            gpu: self.gpu,
            replays: self.replays,
            work,
            gpu_samples,
            steps,
            threads: self.threads,
            names: name::all(),
            timeline,
            meta: Meta {
                cycle: spec.cycle,
                step_num: closing.step_num,
                opened: spec.opened,
                closed,
                options,
                truncation: Truncation {
                    over_capacity: self.over_capacity,
                    ring_full: lost.ring_full,
                    unread: unread as u64,
                    cut_short: closing.cut_short,
                    handler_behind: self.handler_behind,
                    late: self.late,
                    no_memory: self.no_memory + lost.no_memory,
                },
                no_cuda_reason,
                metadata: closing.metadata,
            },
        }
    }
}

/// Notes whether CUPTI recorded during a window, and what a reader of its records must know.
fn describe(work: &mut WindowWork, spec: &WindowSpec, recording: Option<Recording>) {
    /// CUPTI begins before the window opens if a step of warm-up precedes it; then nothing is missing.
    const LATE: Duration = Duration::from_micros(10);
    if !spec.has_kernels() {
        return;
    }
    let Some(recording) = recording else {
        work.missing = cuda::why_no_kernels(spec.options.kernels == Kernels::Required);
        return;
    };
    work.is_recorded = true;
    let late = recording.since.saturating_sub(spec.opened);
    if late > clock().in_ticks(LATE) {
        work.since = recording.since;
        let milliseconds = clock().nanoseconds(late as f64) / 1e6;
        work.notes.push(format!(
            "kernels were recorded from {milliseconds:.3} ms after the window had opened, and calls and launches are counted \
             from then: CUPTI was starting; record a step of warm-up"
        ));
    }
    if recording.clock_offset != 0 {
        work.notes.push(format!(
            "CUPTI has a clock of its own, and its times were moved by {} ns: they may be off by some microseconds",
            recording.clock_offset
        ));
    }
}

/// Returns why scopes have no GPU times, and what to do about it.
fn no_cuda_reason(status: &Status) -> String {
    match status {
        Status::Ready { .. } => {
            "its scopes name no stream: write `stream = …`, or use `cuda::with_stream` or `cuda::set_default_stream`"
                .to_owned()
        }
        Status::NotLoaded | Status::NotInitialised => {
            format!("{status}: leave out `Activity::Cuda` if the program does not use CUDA")
        }
        status => status.to_string(),
    }
}
