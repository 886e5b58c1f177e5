//! The GPU times of a window by stream, ready to be placed.

use profiler_report::internal::{GpuSlice, NO_PARENT};

use super::times::Times;
use super::{has_start, whole};
use crate::session::{NONE, Trace};

/// A GPU time and its scope, as indices.
#[derive(Clone, Copy)]
pub(crate) struct TimedScope {
    pub(crate) gpu: u32,
    pub(crate) scope: u32,
}

/// Calls `each` with the GPU times of each stream, and the items to place for them. A scope comes after its parent.
pub(crate) fn for_each_stream(
    trace: &Trace,
    times: Times<'_>,
    mut each: impl FnMut(&[TimedScope], &[GpuSlice]),
) {
    let by_stream = by_stream(trace);
    if by_stream.is_empty() {
        return;
    }
    let mut items = Vec::new();
    let mut place_of: Vec<u32> = vec![NONE; trace.gpu.len()];
    let same = |one: &TimedScope, next: &TimedScope| {
        let [one, next] = [one, next].map(|timed| &trace.gpu[timed.gpu as usize]);
        (one.device, one.stream_key) == (next.device, next.stream_key)
    };
    for stream in by_stream.chunk_by(same) {
        items.clear();
        for timed in stream {
            items.push(item(trace, times, *timed, &place_of));
            place_of[timed.gpu as usize] = u32::try_from(items.len() - 1).unwrap_or(NONE);
        }
        each(stream, &items);
        // A parent on another stream does not count: forget this stream's items.
        for timed in stream {
            place_of[timed.gpu as usize] = NONE;
        }
    }
}

/// Returns all GPU times whose start is known, sorted by stream; on each stream, a scope comes after its parent.
fn by_stream(trace: &Trace) -> Vec<TimedScope> {
    let mut timed: Vec<TimedScope> = (0..)
        .zip(&trace.nodes)
        .map(|(scope, node)| TimedScope {
            gpu: node.gpu,
            scope,
        })
        .filter(|timed| trace.gpu.get(timed.gpu as usize).is_some_and(has_start))
        .collect();
    timed.sort_unstable_by_key(|timed| {
        let gpu = &trace.gpu[timed.gpu as usize];
        let start = trace.scopes[timed.scope as usize].start;
        let began_together = around(trace, timed.scope)
            .take_while(|around| trace.scopes[*around as usize].start >= start);
        (
            gpu.device,
            gpu.stream_key,
            start,
            began_together.count(),
            timed.scope,
        )
    });
    timed
}

/// Returns the enclosing scopes, innermost first.
pub(crate) fn around(trace: &Trace, scope: u32) -> impl Iterator<Item = u32> {
    let nodes = &trace.nodes;
    let up = |scope: u32| Some(nodes[scope as usize].parent).filter(|parent| *parent != NONE);
    std::iter::successors(up(scope), move |scope| up(*scope))
}

fn item(trace: &Trace, times: Times<'_>, of: TimedScope, place_of: &[u32]) -> GpuSlice {
    let gpu = &trace.gpu[of.gpu as usize];
    let scope = &trace.scopes[of.scope as usize];
    let parent = around(trace, of.scope)
        .filter_map(|around| place_of.get(trace.nodes[around as usize].gpu as usize))
        .find(|place| **place != NONE);
    GpuSlice {
        start: times.measured(gpu.start.unwrap_or_default()),
        length: whole(gpu.ns),
        uncertainty: whole(gpu.uncertainty_ns.into()),
        host: times.of_ticks(scope.start),
        thread: scope.thread,
        parent: parent.map_or(NO_PARENT, |place| *place as usize),
    }
}
