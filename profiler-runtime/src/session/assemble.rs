//! How the records of a window become a trace: who is inside of whom, and whose GPU time is which.

use std::collections::HashMap;

use super::record::{GpuRecord, Kind, ScopeRecord};
use super::trace::{NONE, Node};

/// Leaves out what belongs to scopes that are not in the window: those that began before it.
pub(super) fn keep_own(scopes: &[ScopeRecord], gpu: &mut Vec<GpuRecord>) {
    let mut keys: Vec<u64> = scopes.iter().map(|scope| scope.cuda).collect();
    keys.sort_unstable();
    gpu.retain(|gpu| keys.binary_search(&gpu.key).is_ok());
}

/// Puts records in order, and finds out what they have to do with each other.
pub(super) fn link(scopes: &mut [ScopeRecord], gpu: &mut [GpuRecord]) -> Vec<Node> {
    scopes.sort_unstable_by_key(place);
    gpu.sort_unstable_by_key(|gpu| gpu.key);
    let mut nodes: Vec<Node> = scopes.iter().map(|scope| node(scope, gpu)).collect();
    let first_future = scopes.partition_point(|scope| !is_future(scope));
    let futures: HashMap<u64, u32> = (first_future..)
        .zip(&scopes[first_future..])
        .map(|(index, future)| (future.serial, index_of(index)))
        .collect();
    nest(&scopes[..first_future], &mut nodes, &futures);
    nodes
}

fn is_future(scope: &ScopeRecord) -> bool {
    matches!(scope.kind, Kind::Future { .. })
}

/// By thread and in the order of opening, then futures by their start.
fn place(scope: &ScopeRecord) -> (bool, u32, u64) {
    if is_future(scope) {
        (true, 0, scope.start)
    } else {
        (false, scope.thread, scope.serial)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the capacity of a window is less"
)]
fn index_of(index: usize) -> u32 {
    index as u32
}

fn node(scope: &ScopeRecord, gpu: &[GpuRecord]) -> Node {
    let found = (scope.cuda != 0).then(|| gpu.binary_search_by_key(&scope.cuda, |gpu| gpu.key));
    let own = match scope.kind {
        Kind::Future { polled } => polled,
        _ => scope.elapsed,
    };
    Node {
        parent: NONE,
        gpu: found.and_then(Result::ok).map_or(NONE, index_of),
        own,
    }
}

/// Gives each scope the one around it, and takes its time off that one's own. The scopes come in the order of
/// opening, so that those that may be around one stand before it.
fn nest(scopes: &[ScopeRecord], nodes: &mut [Node], futures: &HashMap<u64, u32>) {
    let mut open: Vec<usize> = Vec::new();
    for (index, scope) in scopes.iter().enumerate() {
        // A scope that is not the parent has ended, or is not in the window.
        while let Some(top) = open.last()
            && (scopes[*top].thread != scope.thread
                || (scopes[*top].serial != scope.parent && scopes[*top].end() < scope.start))
        {
            open.pop();
        }
        let around = open
            .iter()
            .rev()
            .copied()
            .find(|around| scopes[*around].serial == scope.parent);
        if let Some(around) = around.filter(|_| scope.parent != 0) {
            adopt(scopes, nodes, futures, around, index);
        }
        open.push(index);
    }
}

fn adopt(
    scopes: &[ScopeRecord],
    nodes: &mut [Node],
    futures: &HashMap<u64, u32>,
    around: usize,
    index: usize,
) {
    let elapsed = scopes[index].elapsed;
    let Kind::Poll { future } = scopes[around].kind else {
        nodes[around].own -= elapsed;
        nodes[index].parent = index_of(around);
        return;
    };
    // What runs in a poll runs in the future.
    nodes[around].own -= elapsed;
    if let Some(future) = futures.get(&future) {
        nodes[*future as usize].own -= elapsed;
        nodes[index].parent = *future;
    }
}
