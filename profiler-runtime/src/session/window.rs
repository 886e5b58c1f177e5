//! A window while it fills.

use std::collections::HashMap;
use std::sync::Arc;

use super::assemble;
use super::record::{RecordKind, ScopeRecord, ThreadInfo};
use super::ring::Lost;
use super::timeline::Timeline;
use super::trace::{Meta, NONE, Node, Step, Trace, Truncation};
use super::{Activity, Options};
use crate::clock::WallAnchor;
use crate::cuda::GpuRecord;
use crate::name;

/// How often activities are turned on and off in one window at most.
const MAX_TOGGLES: usize = 4096;

/// What is known of a window from outside: when it is open, and what belongs into it.
#[derive(Clone, Debug)]
pub(super) struct WindowSpec {
    pub(super) id: u64,
    pub(super) session: u64,
    pub(super) cycle: u64,
    pub(super) capacity: usize,
    pub(super) options: Options,
    /// In ticks.
    pub(super) opened: u64,
    /// In ticks, once it is closed.
    pub(super) closed: Option<u64>,
    /// Since when what is recorded, in order.
    pub(super) toggles: Vec<(u64, Options)>,
    pub(super) first: WallAnchor,
    /// Scopes that had been lost when it opened.
    pub(super) lost_before: Lost,
}

/// How a window ended.
#[derive(Clone, Debug)]
pub(super) struct WindowClose {
    pub(super) cut_short: bool,
    pub(super) step_num: u64,
    pub(super) steps: Vec<OwnStep>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) lost_after: Lost,
    pub(super) last: WallAnchor,
}

/// A step, and the thread that made it.
#[derive(Clone, Debug)]
pub(super) struct OwnStep {
    pub(super) number: u64,
    pub(super) thread: Option<Arc<ThreadInfo>>,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl WindowSpec {
    /// Whether a scope lies inside of it. One that begins when it closes is the next one's.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        let closed = self.closed.unwrap_or(u64::MAX);
        start >= self.opened && start < closed && end <= closed
    }

    /// Whether a scope that ended then may lie inside of it.
    fn may_hold(&self, end: u64) -> bool {
        end >= self.opened && end <= self.closed.unwrap_or(u64::MAX)
    }

    /// Whether anything was recorded of scopes that began then.
    pub(super) fn records_any(&self, at: u64) -> bool {
        self.records(Activity::Cpu, at) || self.records(Activity::Cuda, at)
    }

    /// Notes what is recorded from now on; false where that was changed too often, and all is recorded.
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

    /// Whether an activity was recorded at a time.
    fn records(&self, activity: Activity, at: u64) -> bool {
        let since = self.toggles.partition_point(|(since, _)| *since <= at);
        let options = since
            .checked_sub(1)
            .and_then(|place| self.toggles.get(place));
        options
            .map_or(self.options, |(_, options)| *options)
            .has(activity)
    }
}

/// What a window has so far.
#[derive(Debug, Default)]
pub(super) struct WindowBuilder {
    scopes: Vec<ScopeRecord>,
    gpu: Vec<GpuRecord>,
    replays: Vec<GpuRecord>,
    threads: Vec<Arc<ThreadInfo>>,
    /// Where threads stand among these.
    places: HashMap<usize, u32>,
    over_capacity: u64,
    handler_behind: u64,
    /// Scopes that there was no memory for.
    no_memory: u64,
    /// Scopes of windows before it that came too late for them.
    pub(super) late: u64,
}

impl WindowBuilder {
    /// Scopes that it holds.
    pub(super) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// Whether GPU times belong to it that may be still to be read.
    pub(super) fn has_cuda(&self) -> bool {
        self.scopes.iter().any(|scope| scope.cuda != 0)
    }

    /// True where the scope belongs to the window, whether there is room or not.
    pub(super) fn add(
        &mut self,
        spec: &WindowSpec,
        thread: &Arc<ThreadInfo>,
        scope: &ScopeRecord,
    ) -> bool {
        if !spec.holds(scope.start, scope.end()) {
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
        // When it began on the CPU is known to its scope, which is looked for in the end.
        // Without memory, its scope counts as one whose GPU time is not read.
        if spec.options.cuda && spec.may_hold(gpu.cpu_end) && self.gpu.try_reserve(1).is_ok() {
            self.gpu.push(*gpu);
        }
    }

    /// Gives up GPU times of scopes that are not here: they must not take the room of those that belong here, which
    /// are no more than scopes. A scope that ended after `recent` may come after its GPU time.
    pub(super) fn settle(&mut self, spec: &WindowSpec, recent: u64) {
        if self.gpu.len() >= spec.capacity.saturating_mul(2) {
            // Without memory it is tried again; until then the times take room.
            let _ = assemble::keep_own(&self.scopes, &mut self.gpu, recent);
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

    /// Gives everything up but the counts, since handlers are behind.
    pub(super) fn empty(&mut self) {
        self.handler_behind += self.give_up();
    }

    /// Gives everything up but the counts; returns how much that was.
    fn give_up(&mut self) -> u64 {
        let scopes = self.scopes.iter();
        let scopes = scopes.filter(|scope| !matches!(scope.kind, RecordKind::Poll { .. }));
        let given_up = scopes.count() + self.replays.len();
        self.scopes = Vec::new();
        self.gpu = Vec::new();
        self.replays = Vec::new();
        self.threads = Vec::new();
        self.places = HashMap::new();
        given_up as u64
    }

    /// Counts what was counted for a window before it.
    pub(super) fn take_counts(&mut self, before: &Self) {
        self.over_capacity += before.over_capacity;
        self.handler_behind += before.handler_behind;
        self.no_memory += before.no_memory;
        self.late += before.late;
    }

    /// Puts the records in order and links them; none where there is no memory for that.
    fn link(&mut self) -> Option<Vec<Node>> {
        assemble::keep_own(&self.scopes, &mut self.gpu, u64::MAX)?;
        assemble::link(&mut self.scopes, &mut self.gpu)
    }

    /// The trace of a window that is complete.
    pub(super) fn into_trace(mut self, spec: &WindowSpec, closing: WindowClose) -> Trace {
        let nodes = self.link().unwrap_or_else(|| {
            self.no_memory += self.give_up();
            Vec::new()
        });
        let lost = closing.lost_after.since(spec.lost_before);
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
        Trace {
            scopes: self.scopes,
            nodes,
            gpu: self.gpu,
            replays: self.replays,
            steps,
            threads: self.threads,
            names: name::all(),
            timeline: Timeline::through(spec.first, closing.last),
            meta: Meta {
                cycle: spec.cycle,
                step_num: closing.step_num,
                opened: spec.opened,
                closed: spec.closed.unwrap_or(spec.opened),
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
                metadata: closing.metadata,
            },
        }
    }
}
