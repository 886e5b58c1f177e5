//! Building a window from records.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::assemble;
use super::clock_line::ClockLine;
use super::processor::ProcessorSamples;
use super::record::{LinkedScope, NONE, RecordKind, ScopeRecord, ThreadInfo};
use super::trace::{Meta, Step, Trace, Truncation};
use super::window::{WindowClose, WindowSpec};
use super::work::{GapReason, WindowWork, WorkGap};
use super::work_builder::{Around, WorkBuilder};
use super::work_check;
use super::{Activity, SessionOptions};
use crate::clock::clock;
use crate::config::KernelRecording;
use crate::cuda::{self, GpuRecord, Recording, Status};
use crate::name;

/// The records of a window so far.
#[derive(Debug, Default)]
pub(super) struct WindowBuilder {
    scopes: Vec<ScopeRecord>,
    gpu: Vec<GpuRecord>,
    replays: Vec<GpuRecord>,
    pub(super) work: WorkBuilder,
    pub(super) processor: ProcessorSamples,
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

    /// Returns the number of all records.
    pub(super) fn records(&self) -> usize {
        self.scopes.len() + self.gpu.len() + self.replays.len() + self.work.records()
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

    /// Adds a thread that launched for scopes of others, unless it is known: it has a track of its own.
    fn place_launching(&mut self, number: u64) {
        if self.threads.iter().any(|thread| thread.number == number) {
            return;
        }
        if let Some(thread) = cuda::launching_thread(number) {
            self.threads.push(Arc::new(ThreadInfo {
                id: thread.id.unwrap_or(number),
                number,
                name: thread.name,
            }));
        }
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
        self.processor = ProcessorSamples::default();
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

    /// Sorts and links the records. Without memory for that, gives them up.
    fn link(&mut self) -> Vec<LinkedScope> {
        let linked = assemble::discard_unrelated(&self.scopes, &mut self.gpu, u64::MAX)
            .and_then(|()| assemble::link(&mut self.scopes, &mut self.gpu));
        linked.unwrap_or_else(|| {
            let (scopes, work) = self.clear_records();
            self.no_memory += scopes;
            self.work.lost.no_memory += work;
            Vec::new()
        })
    }

    /// Builds the trace of a complete window.
    pub(super) fn into_trace(mut self, spec: &WindowSpec, closing: WindowClose) -> Trace {
        let mut nodes = self.link();
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
            .reduce(|all, options| SessionOptions {
                cpu: all.cpu || options.cpu,
                cuda: all.cuda || options.cuda,
                ..all
            })
            .unwrap_or(spec.options);
        let scope_threads = self.threads.len();
        for number in self.work.launching_threads() {
            self.place_launching(number);
        }
        let has_cuda = !self.gpu.is_empty() || !self.replays.is_empty() || unread > 0;
        let clock_line = ClockLine::through(spec.first, closing.last);
        let around = Around {
            scopes: &self.scopes,
            nodes: &nodes,
            threads: &self.threads,
            scope_threads,
            line: clock_line,
        };
        let mut work = self.work.build(&around);
        describe(&mut work, spec, closing.recording);
        remove_bound(&work, &self.gpu, &mut self.scopes, &mut nodes);
        work.notes
            .extend(work_check::check(&work, &nodes, &self.gpu).note());
        // A scope without a GPU time has that of its kernels, or of what a framework has reported.
        let has_cuda = has_cuda || work.has_times_of_scopes();
        let expects_cuda = options.cuda && options.expects_cuda && !self.scopes.is_empty();
        let no_cuda_reason =
            (expects_cuda && !has_cuda).then(|| no_cuda_reason(&cuda::known_status()));
        let why_off = closing.why_off.filter(|_| self.scopes.is_empty());
        let closed = spec.closed.unwrap_or(spec.opened);
        let gpu_samples = cuda::nvml::samples_between(
            spec.options.gpu_samples,
            (clock_line.unix_ns(spec.opened), clock_line.unix_ns(closed)),
            (spec.opened, closed),
        );
        let mut processor = self.processor;
        let mut samples_of = |thread: &Arc<ThreadInfo>| {
            if work.is_recorded {
                processor.take(thread.number, (spec.opened, closed))
            } else {
                Vec::new()
            }
        };
        let processor = self.threads.iter().map(&mut samples_of).collect();
        Trace {
            scopes: self.scopes,
            nodes,
            gpu: self.gpu,
            replays: self.replays,
            work,
            gpu_samples,
            steps,
            processor,
            threads: self.threads,
            names: name::all(),
            clock_line,
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
                    skipped_windows: spec.skipped,
                },
                no_cuda_reason,
                why_off,
                metadata: closing.metadata,
            },
        }
    }
}

/// Removes the GPU times of scopes to which streams were bound, if work of theirs was recorded and none is missing. Work of a
/// scope inside counts too, unless a GPU time of its own has it. The times of work tell more, and would be counted beside the sums.
fn remove_bound(
    work: &WindowWork,
    gpu: &[GpuRecord],
    scopes: &mut [ScopeRecord],
    nodes: &mut [LinkedScope],
) {
    if !work.lost.is_complete() || !nodes.iter().any(|node| node.is_bound) {
        return;
    }
    let mut has_work = vec![false; nodes.len()];
    for record in work.on_streams() {
        let mut at = work.scope_of(record);
        while let Some(node) = at.and_then(|at| nodes.get(at)) {
            let time = gpu.get(node.gpu as usize).filter(|_| !node.is_bound);
            let is_counted = time.is_some_and(|time| {
                time.loss.is_none() && Some(time.stream_key) == record.stream_key
            });
            let known = at.and_then(|at| has_work.get_mut(at));
            // Up to a scope whose time has it, or around which all are known.
            if is_counted || known.is_none_or(|known| mem::replace(known, true)) {
                break;
            }
            at = Some(node.parent as usize);
        }
    }
    let is_recorded = |scope: &ScopeRecord| {
        let mut gaps = work.gaps.iter();
        gaps.all(|gap| scope.end() <= gap.span.0 || scope.start >= gap.span.1)
    };
    for ((node, scope), has_work) in nodes.iter_mut().zip(scopes).zip(has_work) {
        if node.is_bound && has_work && is_recorded(scope) {
            (node.gpu, scope.cuda) = (NONE, 0);
        }
    }
}

/// Notes whether CUPTI recorded during a window, and what a reader of its records must know.
fn describe(work: &mut WindowWork, spec: &WindowSpec, recording: Option<Recording>) {
    if !spec.has_kernels() {
        return;
    }
    let Some(recording) = recording else {
        work.missing = cuda::why_no_kernels(spec.options.kernels == KernelRecording::Required);
        return;
    };
    work.is_recorded = true;
    // They would stand beside the kernels that they are the times of.
    work.reported.clear();
    work.gaps = gaps(spec, recording);
    if let Some(rate) = recording.other_clock {
        work.notes.push(format!(
            "CUPTI has another clock than the profiler's, such as that of another profiler, and it counts in {rate:.3} ns: the \
             times of kernels were converted, and may be off by some microseconds"
        ));
    }
}

/// Returns the times of a window in which work may have run that was not recorded.
fn gaps(spec: &WindowSpec, recording: Recording) -> Vec<WorkGap> {
    /// CUPTI begins before the window opens if a step of warm-up precedes it; then nothing is missing.
    const LATE: Duration = Duration::from_micros(10);
    let closed = spec.closed.unwrap_or(spec.opened);
    let starting = (spec.opened.max(recording.idle_until), recording.since);
    let is_late = starting.1.saturating_sub(starting.0) > clock().in_ticks(LATE);
    let mut gaps = Vec::new();
    let mut add = |(from, to): (u64, u64), reason| {
        if from < to {
            let span = (from, to);
            gaps.push(WorkGap { span, reason });
        }
    };
    for (index, (from, options)) in spec.toggles.iter().enumerate() {
        let next = spec.toggles.get(index + 1);
        let (from, to) = (
            (*from).clamp(spec.opened, closed),
            next.map_or(closed, |(at, _)| (*at).min(closed)),
        );
        if !options.has(Activity::Cuda) {
            add((from, to), GapReason::Off);
        } else if is_late {
            add(
                (from.max(starting.0), to.min(starting.1)),
                if spec.had_warmup {
                    GapReason::StartingAfterWarmup
                } else {
                    GapReason::Starting
                },
            );
        }
    }
    gaps
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

#[cfg(test)]
mod tests {
    use super::super::work_joiner::tests::window;
    use super::*;

    #[test]
    fn a_step_of_warm_up_is_advised_where_there_was_none() {
        let since = clock().in_ticks(Duration::from_millis(1));
        let recording = Recording {
            since,
            idle_until: 0,
            other_clock: None,
        };
        let advice = |had_warmup| {
            let spec = WindowSpec {
                opened: 1,
                closed: Some(2 * since),
                toggles: vec![(1, SessionOptions::DEFAULT)],
                had_warmup,
                ..window(1)
            };
            let gaps = gaps(&spec, recording).into_iter();
            gaps.map(|gap| gap.reason.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(
            [false, true].map(advice),
            [
                ["CUPTI was starting; record a step of warm-up"],
                ["CUPTI was starting; record more steps of warm-up"]
            ]
        );
    }
}
