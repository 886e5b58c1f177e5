//! Assembling the records of a window into a trace: which scope encloses which, and which GPU time belongs to which
//! scope.

use std::collections::HashMap;

use super::across_threads;
use super::record::{LinkedScope, NONE, RecordKind, ScopeRecord};
use crate::cuda::GpuRecord;

/// Discards GPU times of scopes outside the window, but none of scopes that ended after `recent`. Returns `None` if
/// memory is short.
#[must_use]
pub(super) fn discard_unrelated(
    scopes: &[ScopeRecord],
    gpu: &mut Vec<GpuRecord>,
    recent: u64,
) -> Option<()> {
    let mut keys = collected(scopes.iter().map(|scope| scope.cuda))?;
    keys.sort_unstable();
    gpu.retain(|gpu| gpu.cpu_end > recent || keys.binary_search(&gpu.key).is_ok());
    Some(())
}

/// Collects into a vector. Returns `None` if memory is short.
fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(items.len()).ok()?;
    all.extend(items);
    Some(all)
}

/// Sorts the records and links them with each other. Returns `None` if memory is short.
pub(super) fn link(scopes: &mut [ScopeRecord], gpu: &mut [GpuRecord]) -> Option<Vec<LinkedScope>> {
    scopes.sort_unstable_by_key(place);
    gpu.sort_unstable_by_key(|gpu| gpu.key);
    let mut nodes = collected(scopes.iter().map(|scope| node(scope, gpu)))?;
    let first_future = scopes.partition_point(|scope| !is_future(scope));
    let mut futures: HashMap<u64, u32> = HashMap::new();
    futures.try_reserve(scopes.len() - first_future).ok()?;
    let all = (first_future..).zip(&scopes[first_future..]);
    futures.extend(all.map(|(index, future)| (future.serial, index_of(index))));
    let inside_of = nest(scopes, first_future, &mut nodes, &futures)?;
    nest_futures(scopes, &mut nodes, &futures)?;
    across_threads::link(scopes, &mut nodes, &inside_of, &futures)?;
    Some(nodes)
}

fn is_future(scope: &ScopeRecord) -> bool {
    matches!(scope.kind, RecordKind::Future { .. })
}

/// The sort key: scopes and polls by thread and serial, then futures by their start.
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

fn node(scope: &ScopeRecord, gpu: &[GpuRecord]) -> LinkedScope {
    let found = (scope.cuda != 0).then(|| gpu.binary_search_by_key(&scope.cuda, |gpu| gpu.key));
    let found = found.and_then(Result::ok);
    let own = match scope.kind {
        RecordKind::Future { polled } => polled,
        _ => scope.elapsed,
    };
    LinkedScope {
        parent: NONE,
        gpu: found.map_or(NONE, index_of),
        is_bound: found.is_some_and(|found| gpu[found].is_bound),
        own,
    }
}

/// Finds the parent of each scope and subtracts the scope's time from the parent's own time. Records come in the order
/// of opening, so that every possible parent stands before its children. Returns the record that directly encloses each
/// one.
fn nest(
    scopes: &[ScopeRecord],
    first_future: usize,
    nodes: &mut [LinkedScope],
    futures: &HashMap<u64, u32>,
) -> Option<Vec<u32>> {
    let mut open: Vec<usize> = Vec::new();
    let mut nesting = Nesting {
        scopes,
        nodes,
        futures,
        inside_of: collected((0..first_future).map(|_| NONE))?,
    };
    for (index, scope) in scopes[..first_future].iter().enumerate() {
        // A scope that ended before this one began is no parent, unless it is named as the parent.
        while let Some(top) = open.last()
            && (scopes[*top].thread != scope.thread
                || (scopes[*top].serial != scope.parent && scopes[*top].end() < scope.start))
        {
            open.pop();
        }
        if let Some(around) = around(scopes, &open, scope) {
            nesting.adopt(around, index);
        }
        open.try_reserve(1).ok()?;
        open.push(index);
    }
    Some(nesting.inside_of)
}

/// Returns the parent. If that is not in the window, returns the innermost scope that was open around both, so that no
/// time is counted twice. A scope that opened after the missing parent is a sibling, however long it lasted.
fn around(scopes: &[ScopeRecord], open: &[usize], scope: &ScopeRecord) -> Option<usize> {
    let is_around = |index: &usize| {
        let around = &scopes[*index];
        let contains = || around.start <= scope.start && around.end() >= scope.end();
        around.serial == scope.parent || (around.serial < scope.parent && contains())
    };
    open.iter().rev().copied().find(is_around)
}

struct Nesting<'w> {
    /// Scopes and polls, then futures.
    scopes: &'w [ScopeRecord],
    nodes: &'w mut [LinkedScope],
    futures: &'w HashMap<u64, u32>,
    /// The record that directly encloses each one on its thread. For a scope inside a poll this is the poll, while its
    /// parent is the future.
    inside_of: Vec<u32>,
}

impl Nesting<'_> {
    fn adopt(&mut self, around: usize, index: usize) {
        self.inside_of[index] = index_of(around);
        self.nodes[index].parent = match self.scopes[around].kind {
            // A scope inside a poll belongs to the future. If that is not in the window, it belongs to the scope around
            // the poll.
            RecordKind::Poll { future } => match self.futures.get(&future) {
                Some(future) => *future,
                None => self.nodes[around].parent,
            },
            _ => index_of(around),
        };
        if self.is_counted(index) {
            self.take_off_around(index);
        }
    }

    /// Returns `true` if the record's time counts as its own. If not, it counts for the enclosing scope. The time of a
    /// poll counts as its future's, if that is in the window.
    fn is_counted(&self, index: usize) -> bool {
        match self.scopes[index].kind {
            RecordKind::Poll { future } => {
                let future = self.futures.get(&future);
                future.is_some_and(|future| self.scopes[*future as usize].has_cpu)
            }
            _ => self.scopes[index].has_cpu,
        }
    }

    /// Subtracts a record's time from the enclosing records: from each one the part that lies inside it, because an
    /// enclosing scope may have ended first.
    fn take_off_around(&mut self, index: usize) {
        let ScopeRecord {
            mut start,
            elapsed: mut left,
            ..
        } = self.scopes[index];
        let mut around = self.inside_of[index] as usize;
        while let Some(scope) = self.scopes.get(around) {
            if self.is_counted(around) {
                let inside = scope.end().saturating_sub(start);
                let taken = left.min(inside.cast_signed());
                self.nodes[around].own -= taken;
                if let RecordKind::Poll { future } = scope.kind
                    && let Some(future) = self.futures.get(&future)
                {
                    self.nodes[*future as usize].own -= taken;
                }
                left -= taken;
                if left == 0 {
                    return;
                }
                start = start.max(scope.end());
            }
            around = self.inside_of[around] as usize;
        }
    }
}

/// The parent of a future is the scope of its first poll. The time of its polls is subtracted from that scope already.
///
/// No scope can become its own ancestor, whatever the window lost: parents, and first polls of futures, always begin
/// before their children.
fn nest_futures(
    scopes: &[ScopeRecord],
    nodes: &mut [LinkedScope],
    futures: &HashMap<u64, u32>,
) -> Option<()> {
    let mut first_polls: HashMap<u32, usize> = HashMap::new();
    first_polls.try_reserve(futures.len()).ok()?;
    for (index, scope) in scopes.iter().enumerate() {
        if let RecordKind::Poll { future } = scope.kind
            && let Some(future) = futures.get(&future)
        {
            let first = first_polls.entry(*future).or_insert(index);
            if scope.start < scopes[*first].start {
                *first = index;
            }
        }
    }
    for (future, poll) in first_polls {
        let around = nodes[poll].parent;
        // If the first poll was lost, a later poll may have run inside a scope that began after the future.
        let began_before = |around: &ScopeRecord| around.start <= scopes[future as usize].start;
        if scopes.get(around as usize).is_some_and(began_before) {
            nodes[future as usize].parent = around;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Trace;
    use crate::session::sample::Sample;

    fn name(trace: &Trace, index: usize) -> &'static str {
        trace.name_of(trace.scopes[index].name)
    }

    /// Returns each scope with its parent and its own time.
    fn nested(sample: Sample) -> Vec<(&'static str, &'static str, i64)> {
        let trace = sample.trace();
        let around = |node: &LinkedScope| match node.parent {
            NONE => "",
            parent => name(&trace, parent as usize),
        };
        let all = trace.nodes.iter().enumerate();
        all.map(|(index, node)| (name(&trace, index), around(node), node.own))
            .collect()
    }

    fn poll(sample: &mut Sample, future: u64, name: &str, parent: u64, start: u64, elapsed: i64) {
        sample.scope(name, parent, start, elapsed);
        sample.last().kind = RecordKind::Poll { future };
    }

    fn future(sample: &mut Sample, serial: u64, name: &str, start: u64, elapsed: i64, polled: i64) {
        sample.scope(name, 0, start, elapsed);
        let record = sample.last();
        (record.serial, record.kind) = (serial, RecordKind::Future { polled });
    }

    #[test]
    fn the_parent_of_a_future_is_the_scope_of_its_first_poll() {
        let mut sample = Sample::new();
        let outer = sample.scope("link: outer", 0, 0, 100);
        poll(&mut sample, 9_000, "link: poll", outer, 10, 20);
        let later = sample.scope("link: later", 0, 200, 100);
        poll(&mut sample, 9_000, "link: poll", later, 210, 20);
        future(&mut sample, 9_000, "link: future", 10, 220, 40);
        assert_eq!(
            nested(sample),
            [
                ("link: outer", "", 80),
                ("link: poll", "link: outer", 20),
                ("link: later", "", 80),
                ("link: poll", "link: later", 20),
                ("link: future", "link: outer", 40),
            ],
            "its polls are off their time, and the future is not once more"
        );
    }

    #[test]
    fn the_poll_of_an_unfinished_future_counts_for_the_enclosing_scope() {
        let mut sample = Sample::new();
        let outer = sample.scope("link: outer", 0, 0, 100);
        poll(&mut sample, 9_000, "link: poll", outer, 10, 60);
        let polled = sample.last().serial;
        sample.scope("link: inner", polled, 20, 30);
        assert_eq!(
            nested(sample),
            [
                ("link: outer", "", 70),
                ("link: poll", "link: outer", 60),
                ("link: inner", "link: outer", 30),
            ],
            "each instant is in a row"
        );
    }

    #[test]
    fn without_its_first_poll_a_future_has_no_parent_that_began_later() {
        let mut sample = Sample::new();
        let later = sample.scope("link: later", 0, 200, 100);
        poll(&mut sample, 9_000, "link: poll", later, 210, 20);
        future(&mut sample, 9_000, "link: future", 10, 220, 40);
        assert_eq!(
            nested(sample),
            [
                ("link: later", "", 80),
                ("link: poll", "link: later", 20),
                ("link: future", "", 40),
            ]
        );
    }

    #[test]
    fn the_enclosing_scope_replaces_a_missing_parent() {
        let mut sample = Sample::new();
        let outer = sample.scope("link: outer", 0, 0, 1000);
        let ended = sample.scope("link: ended", outer, 10, 20);
        let middle = ended + 1;
        sample.scope("link: inner", middle, 50, 600);
        sample.last().serial = middle + 1;
        sample.scope("link: innermost", middle + 1, 60, 100);
        sample.last().serial = middle + 2;
        assert_eq!(
            nested(sample),
            [
                ("link: outer", "", 380),
                ("link: ended", "link: outer", 20),
                ("link: inner", "link: outer", 500),
                ("link: innermost", "link: inner", 100),
            ]
        );
    }

    #[test]
    fn the_time_of_a_scope_without_cpu_times_counts_for_the_enclosing_scope() {
        // The future's own time of 200 counts for the outer scope if the future has no CPU time either.
        for (has_cpu, expected) in [(true, 500), (false, 700)] {
            let mut sample = Sample::new();
            let outer = sample.scope("link: outer", 0, 0, 1000);
            let middle = sample.scope("link: middle", outer, 50, 800);
            sample.last().has_cpu = false;
            poll(&mut sample, 9_000, "link: poll", middle, 100, 500);
            sample.last().has_cpu = false;
            let polled = sample.last().serial;
            sample.scope("link: inner", polled, 200, 300);
            future(&mut sample, 9_000, "link: future", 100, 600, 500);
            sample.last().has_cpu = has_cpu;
            let own: Vec<i64> = nested(sample).into_iter().map(|(_, _, own)| own).collect();
            assert_eq!((own[0], own[3]), (expected, 300));
        }
    }

    #[test]
    fn a_child_that_outlives_its_parent_is_subtracted_only_up_to_the_end_of_the_parent() {
        let mut sample = Sample::new();
        let whole = sample.scope("link: whole", 0, 0, 1_000);
        let outer = sample.scope("link: outer", whole, 0, 200);
        let late = sample.scope("link: late", outer, 150, 500);
        sample.scope("link: inner", late, 400, 100);
        assert_eq!(
            nested(sample),
            [
                ("link: whole", "", 350),
                ("link: outer", "link: whole", 150),
                ("link: late", "link: outer", 400),
                ("link: inner", "link: late", 100),
            ]
        );
    }

    #[test]
    fn a_sibling_is_never_taken_for_a_missing_parent() {
        let mut sample = Sample::new();
        // Opened after the missing parent, and dropped late.
        sample.scope("link: late", 0, 20, 1000);
        sample.last().serial = 6;
        sample.scope("link: inner", 5, 50, 100);
        sample.last().serial = 7;
        // Opened before the scope, and ended while it was open.
        sample.on_thread(1, "link: crossed", 0, 0, 100);
        sample.last().serial = 1;
        sample.on_thread(1, "link: inner", 2, 50, 100);
        assert_eq!(
            nested(sample),
            [
                ("link: late", "", 1000),
                ("link: inner", "", 100),
                ("link: crossed", "", 100),
                ("link: inner", "", 100),
            ]
        );
    }
}
