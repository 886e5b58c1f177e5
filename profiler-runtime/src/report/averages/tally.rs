//! The sums of a walk through a trace: for each row, and for each pair of caller and callee.

use super::child_memory::ChildMemory;
use super::nesting::OpenCalls;
use crate::clock::clock;
use crate::cuda::GpuRecord;
use crate::own_cost;
use crate::report::histogram::Histogram;
use crate::report::row::{MemoryStats, Row};
use crate::report::times::Times;
use crate::session::{Event, RecordEnding, RecordKind, ScopeRecord, Timeline};
use crate::stream_key::StreamKey;

/// Sums over calls; on the CPU in ticks, on the GPU in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) primitive_calls: u64,
    /// The time of outermost calls.
    total: i64,
    /// The time of outermost calls, where a future counts only with its polls.
    busy: i64,
    own: i64,
    cuda_calls: u64,
    cuda_total: f64,
    cuda_own: f64,
    open: OpenCalls,
}

/// One scope of a walk.
#[derive(Clone, Copy)]
pub(super) struct ScopeCall<'t> {
    pub(super) event: Event<'t>,
    pub(super) scope: &'t ScopeRecord,
    /// Its time without its children, in ticks.
    pub(super) own: i64,
    /// Its GPU time, unless that was lost.
    pub(super) gpu: Option<&'t GpuRecord>,
}

impl<'t> ScopeCall<'t> {
    pub(super) fn new(event: Event<'t>, own: i64) -> Self {
        Self {
            event,
            scope: event.record(),
            own: if event.has_cpu() { own } else { 0 },
            gpu: event.gpu_record().filter(|gpu| gpu.loss.is_none()),
        }
    }

    /// Returns its CPU time, zero if that was not recorded.
    fn elapsed(&self) -> i64 {
        if self.event.has_cpu() {
            self.scope.elapsed.max(0)
        } else {
            0
        }
    }

    /// Returns its processor time including children.
    fn busy(&self) -> i64 {
        match self.scope.kind {
            RecordKind::Future { polled } if self.event.has_cpu() => polled.max(0),
            _ => self.elapsed(),
        }
    }

    fn stream(&self) -> Option<StreamKey> {
        self.gpu.map(|gpu| gpu.stream_key)
    }
}

impl Sums {
    /// Enters a call. Returns `true` if it is outermost.
    pub(super) fn enter(&mut self, call: &ScopeCall) -> bool {
        let is_outermost = self.open.enter();
        self.calls += 1;
        self.own += call.own;
        if is_outermost {
            self.primitive_calls += 1;
            self.total += call.elapsed();
            self.busy += call.busy();
        }
        if let Some(gpu) = call.gpu {
            let is_outermost = self.open.enter_stream(gpu.stream_key);
            self.count_gpu(gpu, is_outermost);
        }
        is_outermost
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, call: &ScopeCall) -> bool {
        self.open.leave(call.stream())
    }

    fn count_gpu(&mut self, gpu: &GpuRecord, is_outermost: bool) {
        self.cuda_calls += 1;
        self.cuda_own += gpu.own;
        if is_outermost {
            self.cuda_total += gpu.ns;
        }
    }

    /// Returns total, busy and self time on the CPU, in nanoseconds.
    pub(super) fn cpu(&self, timeline: &Timeline) -> [f64; 3] {
        [self.total, self.busy, self.own].map(|ticks| timeline.ns(ticks.max(0)))
    }

    /// Returns total and self time on the GPU, in nanoseconds; `None` if no call has one.
    pub(super) fn cuda(&self) -> Option<[f64; 2]> {
        (self.cuda_calls > 0).then(|| [self.cuda_total, self.cuda_own.max(0.0)])
    }
}

/// The accumulated values of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sums: Sums,
    cpu: Vec<f64>,
    cuda: Vec<f64>,
    launch_bound: u64,
    without_cuda: u64,
    futures: u64,
    polled: i64,
    panicked: u64,
    dropped_futures: u64,
    memory: Option<MemoryStats>,
}

impl Tally {
    pub(super) fn enter(&mut self, call: &ScopeCall, timeline: &Timeline) {
        self.sums.enter(call);
        if call.event.has_cpu() {
            self.cpu.push(timeline.ns(call.elapsed()));
        }
        match call.scope.ending {
            RecordEnding::Returned => {}
            RecordEnding::Panicked => self.panicked += 1,
            RecordEnding::Dropped => self.dropped_futures += 1,
        }
        if call.event.is_future() {
            self.futures += 1;
            self.polled += call.busy();
        }
        self.without_cuda += u64::from(call.event.gpu_loss().is_some());
        if let Some(gpu) = call.gpu {
            self.cuda.push(gpu.ns);
            // The events are recorded outside the two clock readings: recording adds to the launch time, as in the
            // statistics.
            let launch_ns = timeline.ns(call.scope.elapsed.max(0)) + 2.0 * own_cost::least_sample();
            self.launch_bound += u64::from(launch_ns >= gpu.ns);
        }
    }

    pub(super) fn leave(&mut self, call: &ScopeCall, parent: u32, children: &mut ChildMemory) {
        let is_outermost = self.sums.leave(call);
        let memory = call.event.memory();
        children.leave(
            call.event.index(),
            parent,
            memory,
            is_outermost,
            &mut self.memory,
        );
    }

    pub(super) fn replay(&mut self, gpu: &GpuRecord) {
        if gpu.loss.is_some() {
            self.without_cuda += 1;
            return;
        }
        self.sums.count_gpu(gpu, true);
        self.cuda.push(gpu.ns);
    }

    /// Writes the values into a row, except the percentages.
    pub(super) fn finish(self, row: &mut Row, timeline: &Timeline, has_cpu: bool) {
        row.calls = self.sums.calls;
        row.primitive_calls = self.sums.primitive_calls;
        row.futures = self.futures;
        row.polled_ns = timeline.ns(self.polled);
        row.panicked = self.panicked;
        row.dropped_futures = self.dropped_futures;
        row.without_cuda = self.without_cuda;
        row.memory = self.memory;
        row.cpu_histogram = Histogram::of_calls(&self.cpu).filter(|_| has_cpu);
        row.cuda_histogram = Histogram::of_calls(&self.cuda);
        let [total, _, own] = self.sums.cpu(timeline);
        row.cpu = Times::of_calls(self.cpu)
            .filter(|_| has_cpu)
            .map(|times| Times {
                total_ns: total,
                self_ns: own,
                ..times
            });
        let shortest = timeline.ns(clock().too_short().cast_signed());
        row.too_short = row.cpu.as_ref().is_some_and(|cpu| cpu.p50_ns < shortest);
        let cuda = self.sums.cuda().zip(Times::of_calls(self.cuda));
        row.launch_bound = cuda
            .as_ref()
            .map(|(_, times)| self.launch_bound as f64 / times.calls as f64);
        row.cuda = cuda.map(|([total, own], times)| Times {
            total_ns: total,
            self_ns: own,
            ..times
        });
    }
}
