//! Averaging a trace.

use std::sync::Arc;

use super::KeyAverages;
use super::child_memory::ChildMemory;
use super::group::Groups;
use super::group_by::GroupBy;
use super::tally::{Call, Edges, GpuCall, Tally};
use crate::clock::clock;
use crate::own_cost;
use crate::report::energy;
use crate::report::kernels::of_trace;
use crate::report::sampled_gpu::SampledGpu;
use crate::report::share::{share_cpu, share_cuda};
use crate::report::sort::SortKey;
use crate::report::timeline::SliceEnding;
use crate::report::walk::{Visit, Walk};
use crate::session::{Activity, CUT_SHORT, Event, NONE, RecordEnding, RecordKind, Trace};
use crate::stream_key::StreamKey;

pub(super) fn gather(trace: &Trace, by: GroupBy) -> KeyAverages {
    let parents: Vec<u32> = trace.nodes.iter().map(|node| node.parent).collect();
    let mut groups = Groups::new(trace, by);
    let is_event = |index: usize| !matches!(trace.scopes[index].kind, RecordKind::Poll { .. });
    let row_of: Vec<u32> = (0..trace.scopes.len())
        .map(|index| {
            if is_event(index) {
                groups.of_scope(index, &parents)
            } else {
                NONE
            }
        })
        .collect();
    let replays: Vec<u32> = trace
        .replays
        .iter()
        .map(|replay| groups.of_replay(replay.name))
        .collect();
    let mut tallies = vec![Tally::default(); groups.len()];
    let mut edges = Edges::default();
    let mut children = ChildMemory::new(parents.len(), trace.meta.options.profile_memory);
    for step in Walk::new(&parents, is_event) {
        let (Visit::Enter(index) | Visit::Leave(index)) = step;
        let event = Event::new(trace, index);
        let call = call_of(trace, event, trace.nodes[index].own);
        let caller = trace.scopes.get(parents[index] as usize);
        let caller = caller.map_or(NONE, |caller| caller.name);
        let edge = edges.between(caller, event.record().name);
        let tally = &mut tallies[row_of[index] as usize];
        if step == Visit::Enter(index) {
            tally.enter(&call, |ticks| trace.timeline.ns(ticks));
            edge.enter(&call);
        } else {
            // Memory is counted for each thread: what a child on another thread uses is not in that of its parent.
            let is_elsewhere = event.has_parent_elsewhere();
            let around = if is_elsewhere { NONE } else { parents[index] };
            let is_outermost = tally.leave(&call);
            let memory = event.memory();
            children.leave(
                event.index(),
                around,
                memory,
                is_outermost,
                &mut tally.memory,
            );
            edge.leave(&call);
        }
    }
    for (replay, row) in trace.replays.iter().zip(replays) {
        let is_lost = replay.loss.is_some();
        tallies[row as usize].replay((!is_lost).then_some((replay.ns, replay.own)));
    }
    finish(trace, by, &groups, tallies, edges)
}

/// Returns one call of the walk. `own` is its time without its children, in ticks.
fn call_of(trace: &Trace, event: Event<'_>, own: i64) -> Call<StreamKey> {
    let scope = event.record();
    let elapsed = event.has_cpu().then(|| scope.elapsed.max(0));
    let gpu = event.gpu_record().filter(|gpu| gpu.loss.is_none());
    Call {
        elapsed,
        busy: match scope.kind {
            RecordKind::Future { polled } if event.has_cpu() => polled.max(0),
            _ => elapsed.unwrap_or_default(),
        },
        own: if event.has_cpu() { own } else { 0 },
        is_future: event.is_future(),
        ending: match scope.ending {
            RecordEnding::Returned => SliceEnding::Returned,
            RecordEnding::Panicked => SliceEnding::Panicked,
            RecordEnding::Dropped => SliceEnding::Dropped,
        },
        lacks_cuda: event.gpu_loss().is_some(),
        gpu: gpu.map(|gpu| {
            // The events are recorded outside the two clock readings: recording adds to the launch time, as in the
            // statistics.
            let launch_ns =
                trace.timeline.ns(scope.elapsed.max(0)) + 2.0 * own_cost::least_sample();
            GpuCall {
                ns: gpu.ns,
                own: gpu.own,
                stream: gpu.stream_key,
                is_launch_bound: Some(launch_ns >= gpu.ns),
            }
        }),
    }
}

fn finish(
    trace: &Trace,
    by: GroupBy,
    groups: &Groups,
    tallies: Vec<Tally<StreamKey>>,
    edges: Edges<StreamKey>,
) -> KeyAverages {
    let has_cpu = trace.has(Activity::Cpu);
    let ns = |ticks| trace.timeline.ns(ticks);
    let shortest = ns(clock().too_short().cast_signed());
    let busy: Vec<f64> = tallies.iter().map(|tally| tally.sums.cpu(ns)[1]).collect();
    let mut rows = Vec::with_capacity(tallies.len());
    for (group, tally) in tallies.into_iter().enumerate() {
        let mut row = groups.row(group);
        tally.finish(&mut row, ns, has_cpu, shortest);
        rows.push(row);
    }
    let name = |name| trace.name_of(name).to_owned();
    let edges = edges.finish(name, ns, |_| has_cpu);
    let self_cpu = share_cpu(&mut rows, |index, _| busy[index]);
    let self_cuda = share_cuda(&mut rows);
    energy::fill(&mut rows, &trace.gpu_samples.devices);
    let kernels = of_trace(trace, rows.len());
    if let Some(kernels) = kernels.as_ref().filter(|_| by == GroupBy::new()) {
        kernels.judge(&mut rows);
    }
    let averages = KeyAverages {
        rows,
        self_cpu_time_total_ns: has_cpu.then_some(self_cpu.unwrap_or(0.0)),
        self_cuda_time_total_ns: self_cuda,
        by,
        edges: Some(edges.into()),
        gpus: SampledGpu::all(&trace.gpu_samples),
        kernels: kernels.map(Arc::new),
        notes: notes(trace),
    };
    averages.sort_by(if has_cpu {
        SortKey::CpuTimeTotal
    } else {
        SortKey::CudaTimeTotal
    })
}

/// Describes what the window lacks.
fn notes(trace: &Trace) -> Vec<String> {
    let truncation = trace.truncation();
    let mut notes: Vec<String> = truncation
        .counted()
        .into_iter()
        .filter(|(scopes, _)| *scopes > 0)
        .map(|(scopes, what)| format!("{scopes} {what}"))
        .collect();
    if truncation.cut_short {
        notes.push(CUT_SHORT.to_owned());
    }
    notes.extend(trace.gpu_samples.notes.iter().cloned());
    if let Some(reason) = trace.no_cuda_reason() {
        notes.push(format!("no GPU times: {reason}"));
    }
    if trace.is_empty() {
        notes.push("no scope began and ended in the window: measure what runs in it, and see that measuring is on".to_owned());
    }
    notes
}
