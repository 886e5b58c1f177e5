//! Traces built by hand, for tests.

use std::panic::Location;
use std::sync::Arc;

use profiler_report::GpuWork;
use profiler_report::internal::{GpuSamples, StreamKey};

use super::assemble;
use super::ended::RecordEnding;
use super::record::{RecordKind, ScopeDetails, ScopeRecord, ThreadInfo};
use super::trace::{Meta, Step, Trace, Truncation};
use super::work::{LaunchRecord, WindowWork, WorkRecord};
use super::{ClockLine, NONE, ProcessorSample, SessionOptions};
use crate::clock::WallAnchor;
use crate::cuda::GpuRecord;
use crate::name;

/// A trace under construction; times are in ticks from `origin`.
pub(crate) struct Sample {
    pub(crate) scopes: Vec<ScopeRecord>,
    pub(crate) gpu: Vec<GpuRecord>,
    pub(crate) work: WindowWork,
    pub(crate) gpu_samples: GpuSamples,
    pub(crate) steps: Vec<Step>,
    pub(crate) processor: Vec<Vec<ProcessorSample>>,
    pub(crate) options: SessionOptions,
    pub(crate) origin: u64,
    anchor: WallAnchor,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let anchor = WallAnchor::narrow();
        Self {
            scopes: Vec::new(),
            gpu: Vec::new(),
            work: WindowWork::default(),
            gpu_samples: GpuSamples::default(),
            steps: Vec::new(),
            processor: Vec::new(),
            options: SessionOptions {
                record_shapes: true,
                profile_memory: true,
                with_stack: true,
                ..SessionOptions::DEFAULT
            },
            origin: anchor.ticks(),
            anchor,
        }
    }

    /// Returns the origin in nanoseconds since the Unix epoch.
    pub(crate) fn unix_ns(&self) -> i64 {
        self.anchor.unix_ns()
    }

    /// Adds a scope with the next serial. Returns the serial, which children name as their parent.
    #[track_caller]
    pub(crate) fn scope(&mut self, name: &str, parent: u64, start: u64, elapsed: i64) -> u64 {
        self.on_thread(0, name, parent, start, elapsed)
    }

    #[track_caller]
    pub(crate) fn on_thread(
        &mut self,
        thread: u32,
        name: &str,
        parent: u64,
        start: u64,
        elapsed: i64,
    ) -> u64 {
        let serial = self.scopes.len() as u64 + 1;
        let name = name::declared(name, Location::caller()).id;
        self.scopes.push(ScopeRecord {
            name,
            ending: RecordEnding::Returned,
            thread,
            has_cpu: true,
            serial,
            parent,
            start: self.origin + start,
            elapsed,
            cuda: 0,
            kind: RecordKind::Scope,
            extra: None,
        });
        serial
    }

    pub(crate) fn last(&mut self) -> &mut ScopeRecord {
        self.scopes.last_mut().expect("a scope")
    }

    /// Adds details to the last scope.
    pub(crate) fn extra(&mut self, extra: ScopeDetails) {
        self.last().extra = Some(Arc::new(extra));
    }

    /// Adds a GPU time to the last scope; `start` is in nanoseconds from the origin, `ns` and `own` are nanoseconds.
    pub(crate) fn gpu(&mut self, stream_key: StreamKey, start: i64, ns: f64, own: f64) {
        let key = self.gpu.len() as u64 + 1;
        let scope = self.last();
        scope.cuda = key;
        let (name, cpu_end) = (scope.name, scope.end());
        self.gpu.push(GpuRecord {
            key,
            name,
            is_replay: false,
            loss: None,
            is_bound: false,
            stream_key,
            device: Some(0),
            start: Some(self.anchor.unix_ns() + start),
            uncertainty_ns: 1000.0,
            ns,
            own,
            cpu_end,
        });
    }

    /// Adds a call of CUDA that began `start` nanoseconds after the origin, in the last scope or outside of all, and the
    /// work that it launched, which ran in `span`, in nanoseconds from the origin. The work's correlation is set.
    pub(crate) fn work(
        &mut self,
        name: &str,
        is_in_scope: bool,
        start: i64,
        span: (i64, i64),
        details: GpuWork,
    ) {
        let index = |len: usize| u32::try_from(len).expect("a small sample");
        let (origin, launch) = (self.anchor.unix_ns(), index(self.work.launches.len()));
        let last = index(self.scopes.len()).wrapping_sub(1);
        let names = &mut self.work.names;
        names.extend(["cuLaunchKernel".into(), name.into()]);
        let name = index(names.len()) - 1;
        self.work.is_recorded = true;
        self.work.launches.push(LaunchRecord {
            name: name - 1,
            thread: 0,
            span: (origin + start, origin + start + 100),
            scope: if is_in_scope { last } else { NONE },
            since: None,
            correlation: launch + 1,
        });
        self.work.work.push(WorkRecord {
            name,
            span: Some((origin + span.0, origin + span.1)),
            launch,
            stream_key: self.gpu.last().map(|gpu| gpu.stream_key),
            details: GpuWork {
                correlation: launch + 1,
                ..details
            },
        });
    }

    pub(crate) fn trace(mut self) -> Trace {
        let has_cpu = self.options.cpu;
        self.scopes
            .iter_mut()
            .for_each(|scope| scope.has_cpu &= has_cpu);
        let nodes = assemble::link(&mut self.scopes, &mut self.gpu).unwrap();
        let closed = self.scopes.iter().map(ScopeRecord::end).max();
        Trace {
            scopes: self.scopes,
            nodes,
            gpu: self.gpu,
            replays: Vec::new(),
            work: self.work,
            gpu_samples: self.gpu_samples,
            steps: self.steps,
            processor: self.processor,
            threads: vec![
                Arc::new(ThreadInfo {
                    id: 4711,
                    number: 1,
                    name: Some("main".into()),
                }),
                Arc::new(ThreadInfo {
                    id: 4712,
                    number: 2,
                    name: None,
                }),
            ],
            names: name::all(),
            clock_line: ClockLine::through(self.anchor, self.anchor),
            meta: Meta {
                cycle: 0,
                step_num: 4,
                opened: self.origin,
                closed: closed.unwrap_or(self.origin),
                options: self.options,
                truncation: Truncation::default(),
                no_cuda_reason: None,
                why_off: None,
                metadata: Vec::new(),
            },
        }
    }
}

#[test]
fn self_times_are_without_children_and_add_up() {
    let mut sample = Sample::new();
    let outer = sample.scope("sample: outer", 0, 0, 1000);
    let inner = sample.scope("sample: inner", outer, 100, 300);
    sample.scope("sample: innermost", inner, 150, 100);
    sample.scope("sample: inner", outer, 500, 200);
    sample.on_thread(1, "sample: elsewhere", 0, 120, 50);
    let trace = sample.trace();
    let own: Vec<i64> = trace.nodes.iter().map(|node| node.own).collect();
    assert_eq!(own, [500, 200, 100, 200, 50]);
    let stack: Vec<&str> = trace
        .events()
        .nth(2)
        .into_iter()
        .flat_map(|event| event.stack().map(|frame| frame.name))
        .collect();
    assert_eq!(stack, ["sample: inner", "sample: outer"]);
}

#[test]
fn what_runs_in_a_poll_runs_in_its_future() {
    let mut sample = Sample::new();
    let poll = sample.scope("sample: task", 0, 0, 100);
    sample.last().kind = RecordKind::Poll { future: 77 };
    sample.scope("sample: in task", poll, 10, 30);
    sample.scope("sample: task", 0, 0, 1000);
    let future = sample.last();
    future.serial = 77;
    future.kind = RecordKind::Future { polled: 100 };
    let trace = sample.trace();
    let events: Vec<_> = trace.events().collect();
    assert_eq!(events.len(), 2, "polls are no events");
    let parent = events[0].parent().expect("the future");
    assert!(parent.is_future());
    assert_eq!(trace.nodes[parent.index()].own, 70);
}
