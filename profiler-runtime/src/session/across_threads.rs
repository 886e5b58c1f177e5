//! Parents on other threads: the scopes of the window that handles named, and the self times that depend on them.

use std::collections::HashMap;

use super::record::{LinkedScope, NONE, RecordKind, ScopeRecord};

/// A span of time, in ticks.
type TickSpan = (u64, u64);

/// Indices of records, grouped by the index of another record.
#[derive(Default)]
struct Grouped(HashMap<u32, Vec<u32>>);

/// Makes the scopes of handles the parents of the scopes that were given one. Subtracts from the own time of each such
/// parent the time in which these scopes ran and its own thread ran no child. Returns `None` if memory is short.
///
/// `inside_of` holds the record that directly encloses each one on its thread, and `futures` the index of each future by
/// its serial.
///
/// No scope becomes its own ancestor: a handle is taken while its scope is open, before the scopes open that it is given
/// to.
pub(super) fn link(
    scopes: &[ScopeRecord],
    nodes: &mut [LinkedScope],
    inside_of: &[u32],
    futures: &HashMap<u64, u32>,
) -> Option<()> {
    let children = adopt(scopes, nodes)?;
    if children.0.is_empty() {
        return Some(());
    }
    let (mut polls, mut inside) = (Grouped::default(), Grouped::default());
    for (index, scope) in (0..).zip(scopes) {
        if let RecordKind::Poll { future } = scope.kind
            && let Some(future) = futures.get(&future)
        {
            polls.add(*future, index)?;
        }
        if let Some(around) = inside_of.get(index as usize)
            && *around != NONE
        {
            inside.add(*around, index)?;
        }
    }
    for (parent, children) in &children.0 {
        let children = children.iter().copied();
        let measured = children.filter(|child| scopes[*child as usize].has_cpu);
        let elsewhere = union(scopes, measured.flat_map(|child| polls.runs(scopes, child)))?;
        for run in polls.runs(scopes, *parent) {
            let own = union(scopes, inside.of(run).iter().copied())?;
            let covered = covered(extent(&scopes[run as usize]), &elsewhere, &own);
            nodes[run as usize].own -= covered;
            if run != *parent {
                nodes[*parent as usize].own -= covered;
            }
        }
    }
    Some(())
}

/// Returns the index of each scope that has handles, by the id that handles name it by. Returns `None` if memory is short.
pub(super) fn owners(scopes: &[ScopeRecord]) -> Option<HashMap<u64, u32>> {
    let mut owners = HashMap::new();
    for (index, scope) in (0..).zip(scopes) {
        if let Some(extra) = scope.extra.as_deref().filter(|extra| extra.shared != 0) {
            owners.try_reserve(1).ok()?;
            owners.insert(extra.shared, index);
        }
    }
    Some(owners)
}

/// Sets the parents that handles gave. Returns the children of each parent that is in the window.
fn adopt(scopes: &[ScopeRecord], nodes: &mut [LinkedScope]) -> Option<Grouped> {
    let owners = owners(scopes)?;
    let mut children = Grouped::default();
    for (index, scope) in (0..).zip(scopes) {
        if let Some(extra) = scope.extra.as_deref().filter(|extra| extra.parent != 0) {
            let parent = owners.get(&extra.parent).copied();
            nodes[index as usize].parent = parent.unwrap_or(NONE);
            if let Some(parent) = parent {
                children.add(parent, index)?;
            }
        }
    }
    Some(children)
}

impl Grouped {
    fn add(&mut self, group: u32, index: u32) -> Option<()> {
        self.0.try_reserve(1).ok()?;
        let members = self.0.entry(group).or_default();
        members.try_reserve(1).ok()?;
        members.push(index);
        Some(())
    }

    fn of(&self, group: u32) -> &[u32] {
        self.0.get(&group).map_or(&[], Vec::as_slice)
    }

    /// Returns the records of the time in which a scope ran on a thread: its polls, or itself if it is no future. `self`
    /// holds the polls of each future.
    fn runs(&self, scopes: &[ScopeRecord], index: u32) -> Vec<u32> {
        match scopes[index as usize].kind {
            RecordKind::Future { .. } => self.of(index).to_vec(),
            _ => vec![index],
        }
    }
}

fn extent(scope: &ScopeRecord) -> TickSpan {
    (scope.start, scope.end())
}

/// Returns the time of at least one of these records, as spans in order that do not touch. Returns `None` if memory is
/// short.
fn union(scopes: &[ScopeRecord], records: impl Iterator<Item = u32>) -> Option<Vec<TickSpan>> {
    let mut spans = Vec::new();
    for record in records {
        spans.try_reserve(1).ok()?;
        spans.push(extent(&scopes[record as usize]));
    }
    spans.sort_unstable();
    spans.dedup_by(|(start, end), (_, last_end)| {
        let joins = *start <= *last_end;
        if joins {
            *last_end = (*last_end).max(*end);
        }
        joins
    });
    Some(spans)
}

/// Returns how many ticks of `run` are in `elsewhere` and not in `own`. Both are in order.
fn covered(run: TickSpan, elsewhere: &[TickSpan], own: &[TickSpan]) -> i64 {
    let first = elsewhere.partition_point(|(_, end)| *end <= run.0);
    let within = elsewhere[first..]
        .iter()
        .take_while(|(start, _)| *start < run.1)
        .map(|span| common(*span, run));
    let mut ticks = 0;
    let mut own = own.iter().copied().peekable();
    for span in within {
        ticks += length(span);
        while let Some(child) = own.peek().copied() {
            ticks -= length(common(common(child, run), span));
            if child.1 > span.1 {
                break;
            }
            own.next();
        }
    }
    ticks
}

fn common(one: TickSpan, other: TickSpan) -> TickSpan {
    (one.0.max(other.0), one.1.min(other.1))
}

fn length((start, end): TickSpan) -> i64 {
    end.saturating_sub(start).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::record::ScopeDetails;
    use crate::session::sample::Sample;

    /// Adds a scope on a thread. `shared` is the id of the scope, `parent` that of its parent on another thread.
    fn add(
        sample: &mut Sample,
        thread: u32,
        (name, enclosing): (&str, u64),
        (start, elapsed): (u64, i64),
        (shared, parent): (u64, u64),
    ) -> u64 {
        let serial = sample.on_thread(thread, name, enclosing, start, elapsed);
        sample.extra(ScopeDetails {
            shared,
            parent,
            ..ScopeDetails::default()
        });
        serial
    }

    /// Returns each scope with its parent and its own time.
    fn nested(sample: Sample) -> Vec<(&'static str, &'static str, i64)> {
        let trace = sample.trace();
        let name = |index: u32| match trace.scopes.get(index as usize) {
            Some(scope) => trace.name_of(scope.name),
            None => "",
        };
        let all = (0..).zip(&trace.nodes);
        all.map(|(index, node)| (name(index), name(node.parent), node.own))
            .collect()
    }

    #[test]
    fn an_instant_with_children_on_several_threads_is_subtracted_once() {
        let mut sample = Sample::new();
        add(&mut sample, 0, ("across: outer", 0), (0, 1000), (7, 0));
        add(&mut sample, 1, ("across: chunk", 0), (100, 500), (0, 7));
        add(&mut sample, 1, ("across: chunk", 0), (650, 50), (0, 7));
        add(&mut sample, 2, ("across: chunk", 0), (200, 600), (0, 7));
        assert_eq!(
            nested(sample),
            [
                ("across: outer", "", 300),
                ("across: chunk", "across: outer", 500),
                ("across: chunk", "across: outer", 50),
                ("across: chunk", "across: outer", 600),
            ]
        );
    }

    #[test]
    fn an_instant_in_which_the_parents_thread_runs_a_child_is_subtracted_once() {
        let mut sample = Sample::new();
        let outer = add(&mut sample, 0, ("across: outer", 0), (0, 1000), (7, 0));
        sample.scope("across: inner", outer, 50, 100);
        sample.scope("across: inner", outer, 300, 400);
        add(&mut sample, 1, ("across: chunk", 0), (100, 300), (0, 7));
        add(&mut sample, 2, ("across: chunk", 0), (600, 300), (0, 7));
        let own = nested(sample)[0].2;
        assert_eq!(own, 1000 - 850);
    }

    #[test]
    fn a_child_that_outlives_its_parent_counts_until_the_parent_ends() {
        let mut sample = Sample::new();
        add(&mut sample, 0, ("across: outer", 0), (100, 100), (7, 0));
        add(&mut sample, 1, ("across: chunk", 0), (50, 70), (0, 7));
        add(&mut sample, 1, ("across: chunk", 0), (190, 900), (0, 7));
        assert_eq!(nested(sample)[0].2, 100 - 20 - 10);
    }

    #[test]
    fn a_parent_that_is_not_in_the_window_leaves_its_children_without_one() {
        let mut sample = Sample::new();
        let around = sample.on_thread(1, "across: around", 0, 0, 500);
        add(
            &mut sample,
            1,
            ("across: chunk", around),
            (100, 300),
            (0, 7),
        );
        assert_eq!(
            nested(sample),
            [("across: around", "", 200), ("across: chunk", "", 300),],
            "its time is still that of a scope inside on the thread"
        );
    }

    #[test]
    fn children_of_a_future_count_in_its_polls_only() {
        let mut sample = Sample::new();
        for start in [0, 400] {
            sample.scope("across: poll", 0, start, 100);
            sample.last().kind = RecordKind::Poll { future: 9_000 };
        }
        add(&mut sample, 1, ("across: chunk", 0), (50, 370), (0, 7));
        add(&mut sample, 0, ("across: future", 0), (0, 500), (7, 0));
        let future = sample.last();
        (future.serial, future.kind) = (9_000, RecordKind::Future { polled: 200 });
        assert_eq!(
            nested(sample),
            [
                ("across: poll", "", 50),
                ("across: poll", "", 80),
                ("across: chunk", "across: future", 370),
                ("across: future", "", 200 - 50 - 20),
            ]
        );
    }

    #[test]
    fn a_future_runs_while_it_is_polled() {
        let mut sample = Sample::new();
        add(&mut sample, 0, ("across: outer", 0), (0, 1000), (7, 0));
        for start in [100, 800] {
            sample.on_thread(1, "across: poll", 0, start, 100);
            sample.last().kind = RecordKind::Poll { future: 9_000 };
        }
        add(&mut sample, 1, ("across: future", 0), (100, 800), (0, 7));
        let future = sample.last();
        (future.serial, future.kind) = (9_000, RecordKind::Future { polled: 200 });
        assert_eq!(nested(sample)[0].2, 800);
    }
}
