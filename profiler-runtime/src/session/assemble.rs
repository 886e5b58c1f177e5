//! How the records of a window become a trace: who is inside of whom, and whose GPU time is which.

use std::collections::HashMap;

use super::record::{RecordKind, ScopeRecord};
use super::trace::{NONE, Node};
use crate::cuda::GpuRecord;

/// Leaves out what belongs to scopes that are not in the window, those that began before it; but nothing of scopes that
/// ended after `recent`. None where there is no memory for that.
#[must_use]
pub(super) fn keep_own(
    scopes: &[ScopeRecord],
    gpu: &mut Vec<GpuRecord>,
    recent: u64,
) -> Option<()> {
    let mut keys = collected(scopes.iter().map(|scope| scope.cuda))?;
    keys.sort_unstable();
    gpu.retain(|gpu| gpu.cpu_end > recent || keys.binary_search(&gpu.key).is_ok());
    Some(())
}

/// Collects into a vector; none where there is no memory for it.
fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(items.len()).ok()?;
    all.extend(items);
    Some(all)
}

/// Puts records in order, and finds out what they have to do with each other. None where there is no memory for that.
pub(super) fn link(scopes: &mut [ScopeRecord], gpu: &mut [GpuRecord]) -> Option<Vec<Node>> {
    scopes.sort_unstable_by_key(place);
    gpu.sort_unstable_by_key(|gpu| gpu.key);
    let mut nodes = collected(scopes.iter().map(|scope| node(scope, gpu)))?;
    let first_future = scopes.partition_point(|scope| !is_future(scope));
    let mut futures: HashMap<u64, u32> = HashMap::new();
    futures.try_reserve(scopes.len() - first_future).ok()?;
    let all = (first_future..).zip(&scopes[first_future..]);
    futures.extend(all.map(|(index, future)| (future.serial, index_of(index))));
    nest(scopes, first_future, &mut nodes, &futures)?;
    nest_futures(scopes, &mut nodes, &futures)?;
    Some(nodes)
}

fn is_future(scope: &ScopeRecord) -> bool {
    matches!(scope.kind, RecordKind::Future { .. })
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
        RecordKind::Future { polled } => polled,
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
fn nest(
    scopes: &[ScopeRecord],
    first_future: usize,
    nodes: &mut [Node],
    futures: &HashMap<u64, u32>,
) -> Option<()> {
    let mut open: Vec<usize> = Vec::new();
    let mut nesting = Nesting {
        scopes,
        nodes,
        futures,
        inside_of: collected((0..first_future).map(|_| NONE))?,
    };
    for (index, scope) in scopes[..first_future].iter().enumerate() {
        // A scope that is not the parent has ended, or is not in the window.
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
    Some(())
}

/// The parent; where that is not in the window, the innermost one that was open around both, so that no time is in two
/// rows. What was opened after the parent, and is not it, is beside the scope however long it lasted.
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
    nodes: &'w mut [Node],
    futures: &'w HashMap<u64, u32>,
    /// What each is directly inside of on its thread; in a poll that is the poll, and the parent is the future.
    inside_of: Vec<u32>,
}

impl Nesting<'_> {
    fn adopt(&mut self, around: usize, index: usize) {
        self.inside_of[index] = index_of(around);
        self.nodes[index].parent = match self.scopes[around].kind {
            // What runs in a poll runs in the future; where that is not in the window, in what is around the poll.
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

    /// Whether its time is its own, or else of what is around it. That of a poll is its future's, where that is in the
    /// window.
    fn is_counted(&self, index: usize) -> bool {
        match self.scopes[index].kind {
            RecordKind::Poll { future } => {
                let future = self.futures.get(&future);
                future.is_some_and(|future| self.scopes[*future as usize].has_cpu)
            }
            _ => self.scopes[index].has_cpu,
        }
    }

    /// Takes its time off the innermost one around it that has it too: as much as is inside of that, which may have
    /// ended first; what is left is off the next one.
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

/// A future is inside of what it was first polled in. Its polls are off that one's own time already.
///
/// Nothing is ever inside of itself, whatever the window lost: who goes from scopes to those around them, and from
/// futures to their first polls, comes to earlier records only.
fn nest_futures(
    scopes: &[ScopeRecord],
    nodes: &mut [Node],
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
        // Where the first poll was lost, the next one may have been in what began later.
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

    /// Each with the one around it, and what it took itself.
    fn nested(sample: Sample) -> Vec<(&'static str, &'static str, i64)> {
        let trace = sample.trace();
        let around = |node: &Node| match node.parent {
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
    fn a_future_is_inside_of_what_it_was_first_polled_in() {
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
    fn the_time_of_a_future_that_goes_on_is_that_of_what_it_was_polled_in() {
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
    fn a_future_whose_first_poll_was_lost_is_not_inside_of_what_began_later() {
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
    fn where_the_parent_is_missing_the_one_around_it_takes_its_place() {
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
    fn what_has_no_cpu_time_leaves_it_to_the_one_around_it() {
        // The future took 200 itself, which are the outer scope's where the future has no CPU time either.
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
    fn what_ends_after_the_one_around_it_is_off_each_time_only_as_far_as_it_is_inside() {
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
    fn what_is_beside_a_scope_is_never_taken_for_its_missing_parent() {
        let mut sample = Sample::new();
        // Opened after the parent, and dropped late.
        sample.scope("link: late", 0, 20, 1000);
        sample.last().serial = 6;
        sample.scope("link: inner", 5, 50, 100);
        sample.last().serial = 7;
        // Opened before it, and ended while the scope was open.
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
