//! The kernels of a window.

use std::collections::HashMap;

use super::gather::{Item, gather};
use super::{AllKernels, Kernels};
use crate::report::walk::NONE;
use crate::session::{Event, RecordKind, Trace};

/// The resolution of the driver's clock for events, for both ends of a GPU time.
const RESOLUTION_NS: f64 = 1000.0;

/// Returns the kernels of a window whose averages have this many rows; `None` if they were not recorded.
pub(in crate::report) fn of_trace(trace: &Trace, rows: usize) -> Option<AllKernels> {
    if !trace.work.is_recorded {
        return None;
    }
    let items = trace.work.on_streams().filter_map(|work| {
        let launch = trace.work.launch_of(work);
        let scope = trace.work.scope_of(work);
        let scope = scope.filter(|scope| *scope < trace.scopes.len());
        let event = scope.map(|scope| Event::new(trace, scope));
        Some(Item {
            name: trace.work.name(work.name),
            span: work.span?,
            device: work.details.device,
            kind: Some(work.details.kind),
            scope: event.map_or(NONE, |event| event.record().name),
            call_start: event.map_or(i64::MIN, Event::start_ns),
            launch: launch.map(|launch| (work.launch, launch.span.1)),
        })
    });
    let mut calls: HashMap<u32, u64> = HashMap::new();
    for scope in &trace.scopes {
        if !matches!(scope.kind, RecordKind::Poll { .. }) {
            *calls.entry(scope.name).or_default() += 1;
        }
    }
    let mut kernels = gather(items.collect(), true, |name| {
        let calls = calls.get(&name).copied().unwrap_or_default();
        (trace.name_of(name).to_owned(), calls)
    });
    add_notes(trace, &mut kernels);
    Some(AllKernels { kernels, rows })
}

/// Says what is missing, and where the kernels and the GPU times of scopes contradict each other: both come from
/// different clocks and ways of measuring, so each checks the other.
fn add_notes(trace: &Trace, kernels: &mut Kernels) {
    let untimed = trace.work.work.iter().filter(|work| work.span.is_none());
    let untimed = untimed.count();
    let (mut too_long, mut too_early) = (0_u64, 0_u64);
    for (sum, first, scope) in own_work(trace) {
        let Some(gpu) = trace.gpu.get(trace.nodes[scope].gpu as usize) else {
            continue;
        };
        too_long += u64::from(sum > gpu.ns + RESOLUTION_NS);
        let uncertainty = f64::from(gpu.uncertainty_ns) + RESOLUTION_NS;
        let early = gpu.start.map_or(0, |start| start.saturating_sub(first));
        too_early += u64::from(early as f64 > uncertainty);
    }
    let notes = [
        (
            untimed as u64,
            "kernels and copies have no times, since the device had no space for them",
        ),
        (
            too_long,
            "calls have kernels that add up to more than their GPU time: CUPTI and the events disagree",
        ),
        (
            too_early,
            "calls have kernels that began before their GPU time, by more than that is uncertain: CUPTI and the events disagree",
        ),
    ];
    let notes = notes.into_iter().filter(|(count, _)| *count > 0);
    let notes = notes.map(|(count, what)| format!("{count} {what}"));
    kernels.notes.extend(notes);
}

/// For each scope with a GPU time, returns how long its own work on that stream took in all, and when the first began.
/// Work of one stream does not overlap, except for the nodes of graphs, which are left out.
fn own_work(trace: &Trace) -> impl Iterator<Item = (f64, i64, usize)> {
    let mut sums: HashMap<usize, (f64, i64)> = HashMap::new();
    for work in trace.work.on_streams() {
        let gpu = |scope: usize| {
            let gpu = trace.gpu.get(trace.nodes.get(scope)?.gpu as usize)?;
            gpu.loss.is_none().then_some(gpu.stream_key)
        };
        if let Some((start, end)) = work.span
            && let Some(scope) = trace.work.scope_of(work)
            && work.stream_key.is_some()
            && work.stream_key == gpu(scope)
            && work.details.graph_node.is_none()
        {
            let (sum, first) = sums.entry(scope).or_insert((0.0, start));
            *sum += (end - start).max(0) as f64;
            *first = start.min(*first);
        }
    }
    sums.into_iter()
        .map(|(scope, (sum, first))| (sum, first, scope))
}
