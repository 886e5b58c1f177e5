//! Log entries of GPU times, on their way to the collector.

use profiler_host::diagnostics::user_code;
use profiler_log::{CudaSpan, Logger};
use profiler_report::internal::StreamKey;
use profiler_report::{DropReason, StreamId, TimeSource};

use crate::clock::{WallAnchor, clock, now};
use crate::collect::{self, next_step};
use crate::cuda::context::measurement::CpuSpan;
use crate::cuda::resolver::anchor::HostTime;
use crate::log_record::LogRequest;
use crate::losses::count_dropped;
use crate::name::Name;

/// Completes log entries and sends them to the collector.
#[derive(Default)]
pub(super) struct LogSender {
    entries: collect::EntrySender,
    /// Converts ticks to wall time: one reading for all entries of a round.
    wall: Option<WallAnchor>,
}

impl LogSender {
    /// Begins a round.
    pub(super) fn begin(&mut self) {
        self.wall = None;
    }

    /// Logs a scope, with its GPU time if it has one.
    pub(super) fn send(
        &mut self,
        name: &'static Name,
        log: LogRequest,
        span: CpuSpan,
        cuda: Option<CudaSpan>,
    ) {
        let cpu_ns = clock().nanoseconds(span.elapsed as f64).max(0.0);
        self.push(name, log, span.end, cpu_ns, cuda);
    }

    /// Logs a replay of a graph that contains the scope.
    pub(super) fn send_again(&mut self, name: &'static Name, log: &LogRequest, cuda: CudaSpan) {
        let request = LogRequest {
            // Shared since the scope was captured.
            logger: log.logger.as_ref().and_then(Logger::share),
            step: Some(next_step(name, 0, log.every)),
            ..LogRequest::new(log.every)
        };
        self.push(name, request, now(), 0.0, Some(cuda));
    }

    fn push(
        &mut self,
        name: &'static Name,
        request: LogRequest,
        end: u64,
        cpu_ns: f64,
        cuda: Option<CudaSpan>,
    ) {
        let cpu_milliseconds = cpu_ns / 1e6;
        let milliseconds = match (name.decide_time_source(TimeSource::Cuda), &cuda) {
            (TimeSource::Cuda, Some(cuda)) => cuda.ms,
            (TimeSource::Cuda, None) => {
                // A CPU time among GPU times would be misleading.
                count_dropped(DropReason::NoCudaTime, 1);
                user_code::drop_value(request);
                return;
            }
            _ => cpu_milliseconds,
        };
        let wall = self.wall.get_or_insert_with(WallAnchor::now);
        let entry = collect::LogEntry {
            name,
            milliseconds,
            cpu_ms: cpu_milliseconds,
            cuda,
            step: request.step.unwrap_or_default(),
            wall_time: wall.wall_time(end),
        };
        self.entries.send(entry, request.logger);
    }
}

/// Fixes the step of an entry: the one that the call brought, or the next one of the name.
pub(super) fn assign_step(log: &mut LogRequest, name: &Name) {
    if log.step.is_none() {
        log.step = Some(next_step(name, log.skipped, log.every));
    }
}

/// Returns the GPU part of a log entry. `start` is when the time began, if that is known.
pub(crate) fn cuda_span(ns: f64, start: Option<HostTime>, stream_key: StreamKey) -> CudaSpan {
    CudaSpan::new(
        ns / 1e6,
        start.map(|start| start.wall),
        start.map(|start| start.uncertainty_ns),
        StreamId(stream_key),
    )
}
