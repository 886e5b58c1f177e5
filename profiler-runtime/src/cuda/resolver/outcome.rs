//! What becomes of a GPU time that was read: statistics, and the log entry that waited for it.

use std::time::SystemTime;

use super::anchor::Place;
use super::gpu_record;
use super::report;
use crate::clock::{WallAnchor, clock};
use crate::collect::{self, next_step};
use crate::cuda::context::measurement::GpuMeasurement;
use crate::diagnostics::user_code;
use crate::diagnostics::{self, DropReason, count_dropped};
use crate::log::CudaSpan;
use crate::log::LogRequest;
use crate::name::{self, Name, TimeSource};
use crate::own_cost;
use crate::stats::GpuCall;
use crate::stream_key::StreamId;
use crate::stream_key::StreamKey;

/// A scope whose events have been read.
pub(crate) struct Timed<'a> {
    pub(crate) item: &'a mut GpuMeasurement,
    pub(crate) ns: f64,
    pub(crate) own: f64,
    pub(crate) place: Option<Place>,
}

/// The way to the loggers.
#[derive(Default)]
pub(crate) struct Outbox {
    jobs: collect::Backlog,
    names: Vec<&'static Name>,
    /// What ties ticks to wall time in this round.
    wall: Option<WallAnchor>,
}

impl Outbox {
    /// Passes on what the loggers have room for; true where that was all.
    pub(crate) fn send(&mut self) -> bool {
        self.wall = None;
        self.jobs.send();
        self.jobs.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Gives a call that is to be logged its step: in the order in which calls end on the CPU, whenever the
    /// device comes to them.
    pub(crate) fn number(&mut self, item: &mut GpuMeasurement) {
        let Some(log) = &mut item.log else { return };
        let Some(name) = self.name(item.scope.name) else {
            return;
        };
        let own = || next_step(name, log.skipped, log.every);
        log.step = Some(log.step.unwrap_or_else(own));
    }

    pub(crate) fn timed(&mut self, timed: Timed<'_>) {
        let Timed {
            item,
            ns,
            own,
            place,
        } = timed;
        let Some(name) = self.name(item.scope.name) else {
            return;
        };
        let cpu_ns = clock().nanoseconds(item.span.elapsed as f64);
        let call = GpuCall {
            ns,
            own,
            // The events stand around the readings of the clock: a function that the device keeps up with takes
            // longer there by what recording takes.
            launch_ns: cpu_ns + 2.0 * own_cost::least_sample(),
            outermost: item.span.outermost,
            stream_key: item.scope.stream_key,
            is_fallback: item.is_fallback,
        };
        if name.cuda.with(|totals| totals.count(&call)) {
            say_wrong_stream(name);
        }
        let Some(log) = item.log.take() else { return };
        let start = place.map(|place| place.wall);
        let uncertainty_ns = place.map(|place| place.uncertainty_ns);
        let cuda = cuda_span(ns, start, uncertainty_ns, item.scope.stream_key);
        self.log(name, log, item.span.end, cpu_ns, Some(cuda));
    }

    /// A replay of a graph that a scope was captured into. It has no CPU time of its own.
    pub(crate) fn replayed(&mut self, item: &GpuMeasurement, ns: f64, own: f64) {
        let Some(name) = self.name(item.scope.name) else {
            return;
        };
        let call = GpuCall {
            ns,
            own,
            launch_ns: 0.0,
            outermost: true,
            stream_key: item.scope.stream_key,
            is_fallback: false,
        };
        name.cuda.with(|totals| totals.count(&call));
        if gpu_record::are_wanted() {
            report::replay(item, ns, own);
        }
        let Some(request) = &item.log else {
            return;
        };
        let again = LogRequest {
            logger: request.logger.as_ref().and_then(crate::log::Logger::share),
            step: Some(next_step(name, 0, request.every)),
            ..LogRequest::new(request.every)
        };
        // A logger that belongs to one call has had it.
        if request.logger.is_some() == again.logger.is_some() {
            let end = crate::clock::now();
            self.log(
                name,
                again,
                end,
                0.0,
                Some(cuda_span(ns, None, None, item.scope.stream_key)),
            );
        }
    }

    /// A call that has no GPU time.
    pub(crate) fn without(&mut self, item: &mut GpuMeasurement) {
        let Some(name) = self.name(item.scope.name) else {
            return;
        };
        let Some(log) = item.log.take() else { return };
        let cpu_ns = clock().nanoseconds(item.span.elapsed as f64);
        self.log(name, log, item.span.end, cpu_ns, None);
    }

    fn log(
        &mut self,
        name: &'static Name,
        request: LogRequest,
        end: u64,
        cpu_ns: f64,
        cuda: Option<CudaSpan>,
    ) {
        let source = name.decide_time_source(TimeSource::Cuda);
        let milliseconds = match (source, &cuda) {
            (TimeSource::Cuda, Some(cuda)) => cuda.ms,
            (TimeSource::Cuda, None) => {
                count_dropped(DropReason::NoCudaTime, 1);
                // Its destructor may be foreign code.
                user_code::drop_value(request);
                return;
            }
            _ => cpu_ns.max(0.0) / 1e6,
        };
        let entry = collect::LogEntry {
            name,
            milliseconds,
            cpu_ms: cpu_ns.max(0.0) / 1e6,
            cuda,
            step: request.step.unwrap_or_default(),
            wall_time: self.wall().wall_time(end),
        };
        self.jobs.add(entry, request.logger);
    }

    fn wall(&mut self) -> WallAnchor {
        *self.wall.get_or_insert_with(WallAnchor::now)
    }

    fn name(&mut self, id: u32) -> Option<&'static Name> {
        if id as usize >= self.names.len() {
            self.names = name::all();
        }
        self.names.get(id as usize).copied()
    }
}

pub(crate) fn cuda_span(
    ns: f64,
    start: Option<SystemTime>,
    uncertainty_ns: Option<f64>,
    stream_key: StreamKey,
) -> CudaSpan {
    CudaSpan::new(ns / 1e6, start, uncertainty_ns, StreamId(stream_key))
}

#[cold]
fn say_wrong_stream(name: &Name) {
    diagnostics::warn_once(&format!(
        "`{}` launches on other streams than the default one, on which it is measured: its GPU time holds \
         nothing of that; write `stream = …` with the stream it launches on, or run it inside \
         `cuda::with_stream(&stream, || …)`",
        name.text
    ));
}
