//! Completes scopes whose GPU times were read or lost: own times, statistics, log entries, and records for sessions.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use profiler_report::{CudaLoss, DropReason};

use super::anchor::Anchor;
use super::captured::ReplayedScope;
use super::child_times::ChildTimes;
use super::gpu_record::{self, GpuRecord};
use super::inner_elsewhere::InnerElsewhere;
use super::log_sender::{self, LogSender, cuda_span};
use super::totals;
use crate::clock::clock;
use crate::cuda::context::measurement::{Bound, GpuMeasurement, Pair, ScopeRef};
use crate::cuda::ffi::EventApi;
use crate::cuda::idle;
use crate::cuda::nvml::energy;
use crate::local::{FirstSegment, Segments, SharedScope, node_gpu};
use crate::losses::count_dropped;
use crate::name::{self, Name};
use crate::own_cost;
use crate::stats::{Added, GpuCall, Nested};

/// Completes scopes. Each scope that left a ring ends in one of its functions or in [`lose_unread`].
pub(super) struct Completion<D: 'static> {
    pub(super) driver: &'static D,
    pub(super) children: ChildTimes,
    inner_elsewhere: InnerElsewhere,
    /// All names at some moment, by id: found without the lock of the registry.
    names: Vec<&'static Name>,
    pub(super) log: LogSender,
    /// The calls that have ended and wait for segments, by the id of what their scope shares.
    pub(super) bound_calls: BTreeMap<u64, Box<GpuMeasurement>>,
    /// The name of the scope that is in progress and not counted yet. If the thread panics, this scope is lost with it.
    pub(super) current_name: Option<u32>,
    /// As `current_name`, the scope of a segment.
    pub(super) current_segment: Option<Arc<SharedScope>>,
}

impl<D: EventApi> Completion<D> {
    pub(super) fn new(driver: &'static D) -> Self {
        Self {
            driver,
            children: ChildTimes::default(),
            inner_elsewhere: InnerElsewhere::default(),
            names: Vec::new(),
            log: LogSender::default(),
            bound_calls: BTreeMap::new(),
            current_name: None,
            current_segment: None,
        }
    }

    /// Gives a scope that is to be logged its step. Scopes get their steps in the order in which they end on the CPU,
    /// whenever the device completes them.
    pub(super) fn assign_step(&mut self, measurement: &mut GpuMeasurement) {
        if let Some(log) = &mut measurement.log
            && let Some(name) = self.name(measurement.scope.name)
        {
            log_sender::assign_step(log, name);
        }
    }

    /// Finds out if a scope that has just left the rings had another one inside, on another stream. Scopes leave in the order
    /// in which they end on the CPU, so those inside have left before.
    pub(super) fn find_inner(&mut self, measurement: &mut GpuMeasurement) {
        let scope = measurement.scope;
        measurement.has_inner_elsewhere = self.inner_elsewhere.end(scope.key, scope.name);
        if let Some(parent) = measurement.parent_on_other_stream {
            self.inner_elsewhere.add(scope.key, parent);
        }
    }

    /// Notes which scope is in progress.
    pub(super) fn begin(&mut self, measurement: &GpuMeasurement) {
        match measurement.bound.as_ref() {
            Some(Bound::Segment { scope, .. }) => self.current_segment = Some(Arc::clone(scope)),
            _ => self.current_name = Some(measurement.scope.name),
        }
    }

    /// Notes that none is.
    pub(super) fn end(&mut self) {
        (self.current_name, self.current_segment) = (None, None);
    }

    /// Completes a scope that has no GPU time.
    pub(super) fn lose(&mut self, measurement: Box<GpuMeasurement>, loss: CudaLoss) {
        self.begin(&measurement);
        if measurement.scope.has_begun {
            let outer = measurement.parent.map(NonZero::get);
            self.children.remove_lost(measurement.scope.key, outer);
            if energy::is_shared() {
                energy::lose(&measurement);
            }
            if idle::is_on() {
                idle::add_unplaced(measurement.pair.and_then(|pair| pair.context.device()));
            }
        }
        // What is captured does not run.
        if loss != CudaLoss::Captured && idle::is_on() {
            idle::add_lost(measurement.span);
        }
        self.current_name = None;
        if let Some(scope) = self.current_segment.take() {
            measurement.give_back();
            return self.lose_segment(&scope, loss);
        }
        totals::count_without(measurement.scope.name, loss);
        self.pass_on_lost(measurement, loss);
    }

    /// Records and logs a scope that has no GPU time, and was counted.
    pub(super) fn pass_on_lost(&mut self, mut measurement: Box<GpuMeasurement>, loss: CudaLoss) {
        if gpu_record::are_wanted() {
            gpu_record::push(GpuRecord::lost(&measurement, loss));
        }
        if let Some(log) = measurement.log.take()
            && let Some(name) = self.name(measurement.scope.name)
        {
            self.log.send(name, log, measurement.span, None);
        }
        measurement.give_back();
    }

    /// Completes a scope whose GPU time was read.
    pub(super) fn complete(
        &mut self,
        mut measurement: Box<GpuMeasurement>,
        pair: Pair,
        ns: f64,
        anchor: Option<&Anchor>,
    ) {
        self.begin(&measurement);
        let (covered, mut inside) = self.children.take(measurement.scope.key);
        let own = (ns - covered).max(0.0);
        let launch_ns = launch_ns(&measurement);
        self.credit_parent(&measurement, pair, ns);
        let is_recorded = gpu_record::are_wanted();
        let has_idle = idle::is_on();
        // To locate an event takes a call of the driver, which is saved if the start is not used.
        let bounds = energy::is_shared().then(|| energy::Bounds::of(measurement.span));
        let is_placed = bounds.is_some_and(energy::Bounds::are_wide);
        let is_used = measurement.log.is_some() || is_recorded || is_placed || has_idle;
        let anchor = anchor.filter(|_| is_used);
        let start = anchor.and_then(|anchor| anchor.host_time(self.driver, pair.begin));
        let device = pair.context.device();
        // Energy that belongs to no name stays unmeasured.
        let has_name = measurement.scope.name != ScopeRef::NO_NAME;
        if let Some(bounds) = bounds.filter(|_| has_name) {
            let begin = start.map(|start| start.wall);
            energy::add(&measurement, device, (ns, own), bounds, begin);
        }
        if has_idle {
            let read = idle::Read {
                ns,
                is_busy: covered <= 0.0 && !measurement.has_inner_elsewhere && launch_ns < ns,
                begin: start.map(|start| (start.wall, start.uncertainty_ns)),
            };
            idle::add(&measurement, device, &read);
        }
        self.current_name = None;
        let parent = measurement.parent.map(NonZero::get);
        if let Some(scope) = self.current_segment.take() {
            let segment = FirstSegment {
                stream_key: measurement.scope.stream_key,
                device,
                start: start.map(|start| (start.wall, start.uncertainty_ns)),
            };
            measurement.give_back();
            return self.read_segment(&scope, segment, (ns, own), (parent, inside));
        }
        if is_recorded {
            gpu_record::push(GpuRecord::read(&measurement, device, ns, own, start));
        }
        let added = inside.count(nested(&measurement), (ns, own));
        if let Some(parent) = parent {
            self.children.pass_on(parent, inside);
        }
        if let Some(name) = self.name(measurement.scope.name) {
            count(name, &measurement, (ns, added), Some(launch_ns));
            if let Some(log) = measurement.log.take() {
                let cuda = cuda_span(ns, start, measurement.scope.stream_key);
                self.log.send(name, log, measurement.span, Some(cuda));
            }
        }
        measurement.give_back();
    }

    /// Counts and logs a replay of a graph that contains the scope. A replay has no CPU time of its own.
    pub(super) fn replay(&mut self, replay: &ReplayedScope<'_>) {
        let &ReplayedScope {
            measurement,
            ns,
            own,
            outermost,
        } = replay;
        let Some(name) = self.name(measurement.scope.name) else {
            return;
        };
        let stream_key = measurement.scope.stream_key;
        let of_name = if outermost { ns } else { 0.0 };
        // Between two calls of the name, the caller and callee may be others.
        let is_pair_outermost = outermost || !measurement.span.call.is_recursive();
        let added = Added {
            own,
            of_name,
            of_pair: if is_pair_outermost { ns } else { 0.0 },
        };
        totals::count(
            name,
            &GpuCall {
                ns,
                own,
                launch_ns: Some(0.0),
                total: added.of_name,
                stream_key,
                is_fallback: false,
            },
        );
        let device = measurement.pair.and_then(|pair| pair.context.device());
        if energy::is_shared() {
            energy::add_replay(measurement.scope.name, device, (ns, own));
        }
        if idle::is_on() {
            idle::add_unplaced(device);
        }
        node_gpu::count(measurement.span.call.node(), added);
        if gpu_record::are_wanted() {
            gpu_record::push(GpuRecord::replay(measurement, ns, own));
        }
        if let Some(log) = &measurement.log {
            self.log
                .send_again(name, log, cuda_span(ns, None, stream_key));
        }
    }

    pub(super) fn name(&mut self, id: u32) -> Option<&'static Name> {
        if id as usize >= self.names.len() {
            self.names = name::all();
        }
        self.names.get(id as usize).copied()
    }

    /// Adds the time of a scope to its parent: as a child on the same stream, or as time on another stream.
    fn credit_parent(&mut self, measurement: &GpuMeasurement, pair: Pair, ns: f64) {
        if let Some(parent) = measurement.parent {
            // The begin of the parent is known if the parent may have children that overlap, as concurrent futures do.
            let begin = measurement
                .parent_start
                .and_then(|start| start.event(pair.epoch))
                .and_then(|start| self.driver.distance(start, pair.begin));
            match begin {
                Some(begin) => self.children.add_interval(parent.get(), begin, begin + ns),
                None => self.children.add(parent.get(), ns),
            }
        }
        if let Some(parent) = measurement.parent_on_other_stream {
            totals::count_on_other_streams(parent, ns);
        }
    }
}

/// Returns how a call that has ended is inside others.
pub(super) fn nested(call: &GpuMeasurement) -> Nested {
    let (span, counted) = (call.span, call.span.call);
    Nested {
        name: (call.scope.name, !span.outermost),
        node: counted.node().map(|node| (node, counted.is_recursive())),
    }
}

/// Adds a GPU time to the statistics of its name, and of its node if callers are counted.
pub(super) fn count(
    name: &'static Name,
    measurement: &GpuMeasurement,
    (ns, added): (f64, Added),
    launch_ns: Option<f64>,
) {
    totals::count(
        name,
        &GpuCall {
            ns,
            own: added.own,
            launch_ns,
            total: added.of_name,
            stream_key: measurement.scope.stream_key,
            is_fallback: measurement.is_fallback,
        },
    );
    node_gpu::count(measurement.span.call.node(), added);
}

/// Returns how long the CPU was busy with a call, including the time to record the events.
fn launch_ns(measurement: &GpuMeasurement) -> f64 {
    let cpu_ns = clock().nanoseconds(measurement.span.elapsed as f64);
    // The CPU span lies between the two records, so the events are farther apart than the span by the cost of recording.
    cpu_ns + 2.0 * own_cost::GPU_SCOPES.least()
}

/// Counts a scope that the resolver will not read because it panicked or ended.
pub(super) fn lose_unread(measurement: Box<GpuMeasurement>, loss: CudaLoss) {
    if let Some(Bound::Segment { scope, .. }) = measurement.bound.as_ref() {
        scope.segments(|segments| segments.lose(loss));
        return measurement.give_back();
    }
    let is_new = match measurement.bound.as_ref() {
        Some(Bound::Call(scope)) => scope.segments(Segments::count_without),
        _ => true,
    };
    if is_new {
        totals::count_without(measurement.scope.name, loss);
    }
    if gpu_record::are_wanted() {
        gpu_record::push(GpuRecord::lost(&measurement, loss));
    }
    if measurement.log.is_some() {
        count_dropped(DropReason::ThreadPanicked, 1);
    }
    measurement.give_back();
}
