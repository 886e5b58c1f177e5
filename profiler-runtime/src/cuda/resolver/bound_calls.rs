//! Calls to whose scopes streams were bound: completes them when the last of their segments was read or lost.

use std::sync::Arc;

use profiler_report::CudaLoss;

use super::anchor::HostTime;
use super::completion::{Completion, count, nested};
use super::gpu_record::{self, GpuRecord};
use super::log_sender::cuda_span;
use crate::cuda::context::measurement::{Bound, GpuMeasurement};
use crate::cuda::ffi::EventApi;
use crate::local::{FirstSegment, Segments, SharedScope};
use crate::own_cost;
use crate::stats::{Inside, Nested};

impl<D: EventApi> Completion<D> {
    /// Takes a call that has ended. It waits for its segments: those of other threads, and of streams that are behind.
    pub(super) fn end_call(&mut self, call: Box<GpuMeasurement>) {
        self.end();
        let Some(Bound::Call(scope)) = call.bound.as_ref() else {
            return call.give_back();
        };
        let scope = Arc::clone(scope);
        let nested = nested(&call);
        self.bound_calls.insert(scope.id, call);
        self.place_segments(&scope, nested);
        self.complete_if_read(&scope);
    }

    pub(super) fn read_segment(
        &mut self,
        scope: &SharedScope,
        segment: FirstSegment,
        (ns, own): (f64, f64),
        (parent, inside): (Option<u64>, Inside),
    ) {
        scope.segments(|segments| {
            segments.read(segment, ns, own);
            segments.nesting.add((parent, inside), (ns, own));
        });
        if let Some(nested) = self.bound_calls.get(&scope.id).map(|call| nested(call)) {
            self.place_segments(scope, nested);
        }
        self.complete_if_read(scope);
    }

    /// Counts the segments of a call that has ended as parts of it, and passes on to the scopes around them what these then
    /// count without.
    fn place_segments(&mut self, scope: &SharedScope, call: Nested) {
        for (parent, inside) in scope.segments(|segments| segments.nesting.count(call)) {
            self.children.pass_on(parent, inside);
        }
    }

    pub(super) fn lose_segment(&mut self, scope: &SharedScope, loss: CudaLoss) {
        scope.segments(|segments| segments.lose(loss));
        self.complete_if_read(scope);
    }

    fn complete_if_read(&mut self, scope: &SharedScope) {
        if !scope.segments(|segments| segments.is_complete()) {
            return;
        }
        if let Some(call) = self.bound_calls.remove(&scope.id) {
            let segments = scope.segments(Segments::take);
            self.complete_call(call, segments);
        }
    }

    fn complete_call(&mut self, mut call: Box<GpuMeasurement>, mut segments: Segments) {
        own_cost::note_more_gpu_times(segments.count().saturating_sub(1));
        let first = match (segments.loss(), segments.first) {
            (None, Some(first)) => first,
            // Where a segment was abandoned, the call was counted.
            (Some(loss), _) if !segments.count_without() => return self.pass_on_lost(call, loss),
            (loss, _) => return self.lose(call, loss.unwrap_or(CudaLoss::Abandoned)),
        };
        let (ns, own) = (segments.ns, segments.own);
        let added = segments.nesting.added;
        call.scope.stream_key = first.stream_key;
        if gpu_record::are_wanted() {
            // A sum of several times has no place on the time line.
            let record = GpuRecord::read(&call, first.device, ns, own, None);
            gpu_record::push(record);
        }
        if let Some(name) = self.name(call.scope.name) {
            count(name, &call, (ns, added), None);
            name.cuda.with(|times| {
                for stream in segments.streams() {
                    times.add_stream(stream);
                }
            });
            if let Some(log) = call.log.take() {
                let start = first.start.map(|(wall, uncertainty_ns)| HostTime {
                    wall,
                    uncertainty_ns,
                });
                let cuda = cuda_span(ns, start, first.stream_key);
                self.log.send(name, log, call.span, Some(cuda));
            }
        }
        call.give_back();
    }
}
