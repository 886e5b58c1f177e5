//! The sums of a walk through calls: for each row, and for each pair of caller and callee.

use std::collections::HashMap;

use super::nesting::OpenCalls;
use crate::callers::{CallEdge, EdgeTimes, OTHER_CALLERS};
use crate::histogram::Histogram;
use crate::row::{MemoryStats, Row};
use crate::timeline::SliceEnding;
use crate::times::Times;
use crate::walk::NONE;

/// One call of a walk. Times on the CPU are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
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
    pub(super) gpu: Option<CallGpuTime>,
}

/// The GPU time of a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallGpuTime {
    /// Without what the program reported.
    pub(super) ns: f64,
    /// Without that of other calls inside.
    pub(super) own: f64,
    /// The number of its stream; [`NONE`] for the sum of all work that the call launched.
    pub(super) stream: u32,
    /// Did the device wait for launches? `None` if the call did not measure it.
    pub(super) is_launch_bound: Option<bool>,
    /// `false` if there is only what the program reported.
    pub(super) is_measured: bool,
    /// What the program reported: it is in the sums, and no time of a call.
    pub(super) reported: f64,
}

/// Sums over calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    calls: u64,
    primitive_calls: u64,
    /// Calls with a time on the CPU.
    timed: u64,
    /// The time of outermost calls.
    total: i64,
    /// The time of outermost calls, where a future counts only with its polls.
    busy: i64,
    own: i64,
    has_cuda: bool,
    cuda_total: f64,
    cuda_own: f64,
    open: OpenCalls,
}

impl Sums {
    /// Enters a call. Returns `true` if it is outermost.
    pub(super) fn enter(&mut self, call: &Call) -> bool {
        let is_outermost = self.open.enter();
        self.calls += 1;
        self.timed += u64::from(call.elapsed.is_some());
        self.own = self.own.saturating_add(call.own);
        if is_outermost {
            self.primitive_calls += 1;
            let elapsed = call.elapsed.unwrap_or_default();
            self.total = self.total.saturating_add(elapsed);
            self.busy = self.busy.saturating_add(call.busy);
        }
        if let Some(gpu) = &call.gpu {
            if gpu.is_measured {
                let is_outermost = self.open.enter_stream(gpu.stream);
                self.count_gpu(gpu.ns, gpu.own, is_outermost);
            }
            self.count_gpu(gpu.reported, gpu.reported, true);
        }
        is_outermost
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, call: &Call) -> bool {
        let measured = call.gpu.as_ref().filter(|gpu| gpu.is_measured);
        self.open.leave(measured.map(|gpu| gpu.stream))
    }

    fn count_gpu(&mut self, ns: f64, own: f64, is_outermost: bool) {
        self.has_cuda = true;
        self.cuda_own += own;
        if is_outermost {
            self.cuda_total += ns;
        }
    }

    /// Returns total, busy and self time on the CPU.
    pub(super) fn cpu(&self) -> [f64; 3] {
        [self.total, self.busy, self.own].map(ns)
    }

    /// Returns total and self time on the GPU, in nanoseconds; `None` if no call has one.
    pub(super) fn cuda(&self) -> Option<[f64; 2]> {
        let own = self.cuda_own.max(0.0);
        // Futures that overlap inside of another call of the row have more time of their own than that call.
        self.has_cuda.then(|| [self.cuda_total.max(own), own])
    }
}

/// The accumulated values of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sums: Sums,
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

impl Tally {
    /// Enters a call.
    pub(super) fn enter(&mut self, call: &Call) {
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
            self.cuda.extend(gpu.is_measured.then_some(gpu.ns));
            self.judged += u64::from(gpu.is_launch_bound.is_some());
            self.launch_bound += u64::from(gpu.is_launch_bound == Some(true));
        }
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, call: &Call) -> bool {
        self.sums.leave(call)
    }

    /// Counts a replay of a graph, which belongs to no call.
    pub(super) fn replay(&mut self, ns: f64, own: f64) {
        self.sums.count_gpu(ns, own, true);
        self.cuda.push(ns);
        self.judged += 1;
    }

    /// Writes the values into a row, except the percentages. Calls whose median is below `shortest_ns` are too short to be
    /// timed individually.
    pub(super) fn finish(self, row: &mut Row, shortest_ns: f64) {
        row.calls = self.sums.calls;
        row.primitive_calls = self.sums.primitive_calls;
        row.futures = self.futures;
        row.polled_ns = ns(self.polled);
        row.panicked = self.panicked;
        row.dropped_futures = self.dropped_futures;
        row.without_cuda = self.without_cuda;
        row.memory = self.memory;
        row.cpu_histogram = Histogram::of_calls(&self.cpu);
        row.cuda_histogram = Histogram::of_calls(&self.cuda);
        let [total, _, own] = self.sums.cpu();
        row.cpu = Times::of_calls(self.cpu).map(|times| Times {
            total_ns: total,
            self_ns: own,
            ..times
        });
        row.too_short = row.cpu.as_ref().is_some_and(|cpu| cpu.p50_ns < shortest_ns);
        let single = Times::of_calls(self.cuda).unwrap_or_default();
        let cuda = self.sums.cuda();
        row.launch_bound = (self.judged > 0).then(|| self.launch_bound as f64 / self.judged as f64);
        row.cuda = cuda.map(|[total, own]| Times {
            total_ns: total,
            self_ns: own,
            ..single
        });
    }
}

/// The most pairs of caller and callee that are counted one by one. The calls of others have the caller [`OTHER`], as in the
/// running statistics.
const MAX_EDGES: usize = 1 << 16;

/// Stands for the names of the callers in pairs beyond the bound.
const OTHER: u32 = NONE - 1;

/// The sums for each pair of caller and callee, by the numbers of their names.
#[derive(Default)]
pub(super) struct Edges {
    numbers: HashMap<(u32, u32), usize>,
    sums: Vec<((u32, u32), Sums)>,
    last: usize,
}

impl Edges {
    pub(super) fn between(&mut self, around: u32, called: u32) -> &mut Sums {
        let mut names = (around, called);
        // Check the last pair first: loops call the same function again, and each scope that is entered is left.
        if self
            .sums
            .get(self.last)
            .is_none_or(|(last, _)| *last != names)
        {
            let next = self.sums.len();
            if next >= MAX_EDGES && !self.numbers.contains_key(&names) {
                names.0 = OTHER;
            }
            self.last = *self.numbers.entry(names).or_insert(next);
            if self.last == next {
                self.sums.push((names, Sums::default()));
            }
        }
        &mut self.sums[self.last].1
    }

    /// Returns the pairs; `name` returns the text of a name.
    pub(super) fn finish(self, name: impl Fn(u32) -> String) -> Vec<CallEdge> {
        let edge = |((around, called), sums): ((u32, u32), Sums)| {
            let [total_ns, _, self_ns] = sums.cpu();
            CallEdge {
                caller: match around {
                    NONE => None,
                    OTHER => Some(OTHER_CALLERS.to_owned()),
                    around => Some(name(around)),
                },
                callee: name(called),
                calls: sums.calls,
                primitive_calls: sums.primitive_calls,
                cpu: (sums.timed > 0).then_some(EdgeTimes {
                    total_ns,
                    self_ns,
                    non_exhaustive: (),
                }),
                cuda: sums.cuda().map(|[total_ns, self_ns]| EdgeTimes {
                    total_ns,
                    self_ns,
                    non_exhaustive: (),
                }),
            }
        };
        self.sums.into_iter().map(edge).collect()
    }
}

/// A time of a file may be negative; one of a call is not.
pub(super) fn ns(ns: i64) -> f64 {
    ns.max(0) as f64
}
