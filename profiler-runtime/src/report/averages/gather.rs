//! Averaging a trace.

use std::collections::HashMap;

use super::KeyAverages;
use super::child_memory::ChildMemory;
use super::group::Groups;
use super::group_by::GroupBy;
use super::tally::{ScopeCall, Sums, Tally};
use crate::report::callers::{CallEdge, EdgeTimes};
use crate::report::share::{share_cpu, share_cuda};
use crate::report::sort::SortKey;
use crate::report::walk::{Visit, Walk};
use crate::session::{Activity, CUT_SHORT, Event, NONE, RecordKind, Trace};

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
        let call = ScopeCall::new(Event::new(trace, index), trace.nodes[index].own);
        let caller = trace.scopes.get(parents[index] as usize);
        let edge = edges.between(caller.map_or(NONE, |caller| caller.name), call.scope.name);
        let tally = &mut tallies[row_of[index] as usize];
        if step == Visit::Enter(index) {
            tally.enter(&call, &trace.timeline);
            edge.enter(&call);
        } else {
            // Memory is counted for each thread: what a child on another thread uses is not in that of its parent.
            let is_elsewhere = call.event.has_parent_elsewhere();
            let around = if is_elsewhere { NONE } else { parents[index] };
            tally.leave(&call, around, &mut children);
            edge.leave(&call);
        }
    }
    for (replay, row) in trace.replays.iter().zip(replays) {
        tallies[row as usize].replay(replay);
    }
    finish(trace, by, &groups, tallies, edges)
}

/// The sums for each pair of caller and callee.
#[derive(Default)]
struct Edges {
    numbers: HashMap<(u32, u32), usize>,
    sums: Vec<((u32, u32), Sums)>,
    last: usize,
}

impl Edges {
    fn between(&mut self, around: u32, called: u32) -> &mut Sums {
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

    fn finish(self, trace: &Trace) -> Vec<CallEdge> {
        let has_cpu = trace.has(Activity::Cpu);
        let edge = |((around, called), sums): ((u32, u32), Sums)| {
            let [total_ns, _, self_ns] = sums.cpu(&trace.timeline);
            CallEdge {
                caller: (around != NONE).then(|| trace.name_of(around).to_owned()),
                callee: trace.name_of(called).to_owned(),
                calls: sums.calls,
                primitive_calls: sums.primitive_calls,
                cpu: has_cpu.then_some(EdgeTimes { total_ns, self_ns }),
                cuda: sums
                    .cuda()
                    .map(|[total_ns, self_ns]| EdgeTimes { total_ns, self_ns }),
            }
        };
        self.sums.into_iter().map(edge).collect()
    }
}

fn finish(
    trace: &Trace,
    by: GroupBy,
    groups: &Groups,
    tallies: Vec<Tally>,
    edges: Edges,
) -> KeyAverages {
    let has_cpu = trace.has(Activity::Cpu);
    let busy: Vec<f64> = tallies
        .iter()
        .map(|tally| tally.sums.cpu(&trace.timeline)[1])
        .collect();
    let mut rows = Vec::with_capacity(tallies.len());
    for (group, tally) in tallies.into_iter().enumerate() {
        let mut row = groups.row(group);
        tally.finish(&mut row, &trace.timeline, has_cpu);
        rows.push(row);
    }
    let self_cpu = share_cpu(&mut rows, |index, _| busy[index]);
    let self_cuda = share_cuda(&mut rows);
    let averages = KeyAverages {
        rows,
        self_cpu_time_total_ns: has_cpu.then_some(self_cpu.unwrap_or(0.0)),
        self_cuda_time_total_ns: self_cuda,
        by,
        edges: Some(edges.finish(trace).into()),
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
    if let Some(reason) = trace.no_cuda_reason() {
        notes.push(format!("no GPU times: {reason}"));
    }
    if trace.is_empty() {
        notes.push("no scope began and ended in the window: measure what runs in it, and see that measuring is on".to_owned());
    }
    notes
}
