//! The sums of a walk through calls: for each row, and for each pair of caller and callee.

use std::collections::HashMap;

use super::nesting::OpenCalls;
use crate::report::callers::{CallEdge, EdgeTimes};
use crate::report::histogram::Histogram;
use crate::report::row::{MemoryStats, Row};
use crate::report::timeline::SliceEnding;
use crate::report::times::Times;
use crate::report::walk::NONE;

/// One call of a walk. Times on the CPU are in the unit of their source, ticks or nanoseconds; `S` tells streams apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<S> {
    /// Its time on the CPU; `None` if that was not recorded.
    pub(super) elapsed: Option<i64>,
    /// Its processor time including children: of a future, the time of its polls.
    pub(super) busy: i64,
    /// Its time without its children.
    pub(super) own: i64,
    pub(super) is_future: bool,
    pub(super) ending: SliceEnding,
    /// It should have a GPU time, and that was lost.
    pub(super) lacks_cuda: bool,
    pub(super) gpu: Option<GpuCall<S>>,
}

/// The GPU time of a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpuCall<S> {
    pub(super) ns: f64,
    /// Without that of other calls inside.
    pub(super) own: f64,
    pub(super) stream: S,
    /// Did the device wait for launches? `None` if the call did not measure it.
    pub(super) is_launch_bound: Option<bool>,
}

/// Sums over calls.
#[derive(Clone, Debug)]
pub(super) struct Sums<S> {
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
    open: OpenCalls<S>,
}

impl<S> Default for Sums<S> {
    fn default() -> Self {
        Self {
            calls: 0,
            primitive_calls: 0,
            total: 0,
            busy: 0,
            own: 0,
            cuda_calls: 0,
            cuda_total: 0.0,
            cuda_own: 0.0,
            open: OpenCalls::default(),
        }
    }
}

impl<S: Copy + PartialEq> Sums<S> {
    /// Enters a call. Returns `true` if it is outermost.
    pub(super) fn enter(&mut self, call: &Call<S>) -> bool {
        let is_outermost = self.open.enter();
        self.calls += 1;
        self.own = self.own.saturating_add(call.own);
        if is_outermost {
            self.primitive_calls += 1;
            let elapsed = call.elapsed.unwrap_or_default();
            self.total = self.total.saturating_add(elapsed);
            self.busy = self.busy.saturating_add(call.busy);
        }
        if let Some(gpu) = &call.gpu {
            let is_outermost = self.open.enter_stream(gpu.stream);
            self.count_gpu(gpu.ns, gpu.own, is_outermost);
        }
        is_outermost
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, call: &Call<S>) -> bool {
        self.open.leave(call.gpu.as_ref().map(|gpu| gpu.stream))
    }

    fn count_gpu(&mut self, ns: f64, own: f64, is_outermost: bool) {
        self.cuda_calls += 1;
        self.cuda_own += own;
        if is_outermost {
            self.cuda_total += ns;
        }
    }

    /// Returns total, busy and self time on the CPU, in nanoseconds.
    pub(super) fn cpu(&self, ns: impl Fn(i64) -> f64) -> [f64; 3] {
        [self.total, self.busy, self.own].map(|time| ns(time.max(0)))
    }

    /// Returns total and self time on the GPU, in nanoseconds; `None` if no call has one.
    pub(super) fn cuda(&self) -> Option<[f64; 2]> {
        (self.cuda_calls > 0).then(|| [self.cuda_total, self.cuda_own.max(0.0)])
    }
}

/// The accumulated values of a row.
#[derive(Clone, Debug)]
pub(super) struct Tally<S> {
    pub(super) sums: Sums<S>,
    pub(super) memory: Option<MemoryStats>,
    cpu: Vec<f64>,
    cuda: Vec<f64>,
    /// Calls that say whether the device waited for launches, with replays, where it never does; and those where it did.
    judged: u64,
    launch_bound: u64,
    without_cuda: u64,
    futures: u64,
    polled: i64,
    panicked: u64,
    dropped_futures: u64,
}

impl<S> Default for Tally<S> {
    fn default() -> Self {
        Self {
            sums: Sums::default(),
            memory: None,
            cpu: Vec::new(),
            cuda: Vec::new(),
            judged: 0,
            launch_bound: 0,
            without_cuda: 0,
            futures: 0,
            polled: 0,
            panicked: 0,
            dropped_futures: 0,
        }
    }
}

impl<S: Copy + PartialEq> Tally<S> {
    /// Enters a call; `ns` converts its CPU times.
    pub(super) fn enter(&mut self, call: &Call<S>, ns: impl Fn(i64) -> f64) {
        self.sums.enter(call);
        if let Some(elapsed) = call.elapsed {
            self.cpu.push(ns(elapsed));
        }
        match call.ending {
            SliceEnding::Returned => {}
            SliceEnding::Panicked => self.panicked += 1,
            SliceEnding::Dropped => self.dropped_futures += 1,
        }
        if call.is_future {
            self.futures += 1;
            self.polled = self.polled.saturating_add(call.busy);
        }
        self.without_cuda += u64::from(call.lacks_cuda);
        if let Some(gpu) = &call.gpu {
            self.cuda.push(gpu.ns);
            self.judged += u64::from(gpu.is_launch_bound.is_some());
            self.launch_bound += u64::from(gpu.is_launch_bound == Some(true));
        }
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, call: &Call<S>) -> bool {
        self.sums.leave(call)
    }

    /// Counts a replay of a graph, which belongs to no call; `None` if its time was lost.
    pub(super) fn replay(&mut self, times: Option<(f64, f64)>) {
        let Some((ns, own)) = times else {
            self.without_cuda += 1;
            return;
        };
        self.sums.count_gpu(ns, own, true);
        self.cuda.push(ns);
        self.judged += 1;
    }

    /// Writes the values into a row, except the percentages. Calls whose median is below `shortest_ns` are too short to be
    /// timed individually.
    pub(super) fn finish(
        self,
        row: &mut Row,
        ns: impl Fn(i64) -> f64,
        has_cpu: bool,
        shortest_ns: f64,
    ) {
        row.calls = self.sums.calls;
        row.primitive_calls = self.sums.primitive_calls;
        row.futures = self.futures;
        row.polled_ns = ns(self.polled);
        row.panicked = self.panicked;
        row.dropped_futures = self.dropped_futures;
        row.without_cuda = self.without_cuda;
        row.memory = self.memory;
        row.cpu_histogram = Histogram::of_calls(&self.cpu).filter(|_| has_cpu);
        row.cuda_histogram = Histogram::of_calls(&self.cuda);
        let [total, _, own] = self.sums.cpu(ns);
        row.cpu = Times::of_calls(self.cpu)
            .filter(|_| has_cpu)
            .map(|times| Times {
                total_ns: total,
                self_ns: own,
                ..times
            });
        row.too_short = row.cpu.as_ref().is_some_and(|cpu| cpu.p50_ns < shortest_ns);
        let cuda = self.sums.cuda().zip(Times::of_calls(self.cuda));
        row.launch_bound = (self.judged > 0).then(|| self.launch_bound as f64 / self.judged as f64);
        row.cuda = cuda.map(|([total, own], times)| Times {
            total_ns: total,
            self_ns: own,
            ..times
        });
    }
}

/// The sums for each pair of caller and callee, by the numbers of their names.
pub(super) struct Edges<S> {
    numbers: HashMap<(u32, u32), usize>,
    sums: Vec<((u32, u32), Sums<S>)>,
    last: usize,
}

impl<S> Default for Edges<S> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            sums: Vec::new(),
            last: 0,
        }
    }
}

impl<S: Copy + PartialEq> Edges<S> {
    pub(super) fn between(&mut self, around: u32, called: u32) -> &mut Sums<S> {
        let names = (around, called);
        // Check the last pair first: loops call the same function again, and each scope that is entered is left.
        if self
            .sums
            .get(self.last)
            .is_none_or(|(last, _)| *last != names)
        {
            let next = self.sums.len();
            self.last = *self.numbers.entry(names).or_insert(next);
            if self.last == next {
                self.sums.push((names, Sums::default()));
            }
        }
        &mut self.sums[self.last].1
    }

    /// Returns the pairs; `name` returns the text of a name. `has_cpu` says of the sums of a pair whether they have CPU
    /// times.
    pub(super) fn finish(
        self,
        name: impl Fn(u32) -> String,
        ns: impl Fn(i64) -> f64,
        has_cpu: impl Fn(u32) -> bool,
    ) -> Vec<CallEdge> {
        let edge = |((around, called), sums): ((u32, u32), Sums<S>)| {
            let [total_ns, _, self_ns] = sums.cpu(&ns);
            CallEdge {
                caller: (around != NONE).then(|| name(around)),
                callee: name(called),
                calls: sums.calls,
                primitive_calls: sums.primitive_calls,
                cpu: has_cpu(called).then_some(EdgeTimes { total_ns, self_ns }),
                cuda: sums
                    .cuda()
                    .map(|[total_ns, self_ns]| EdgeTimes { total_ns, self_ns }),
            }
        };
        self.sums.into_iter().map(edge).collect()
    }
}
