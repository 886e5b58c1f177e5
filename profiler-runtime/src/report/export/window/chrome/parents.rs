//! Which scopes readers cannot nest by their times alone.
//!
//! A reader takes the innermost slice around another one for its parent, and subtracts the time of the children from that
//! of the parent. Both are wrong where a parent is on another thread or a guard was dropped out of order. There the trace
//! says both.

use std::collections::HashMap;

use crate::report::export::window::times::Times;
use crate::session::{NONE, RecordKind, ScopeRecord, Trace};

const PARENT: u8 = 1;
const SELF_TIME: u8 = 2;

/// The parents that scopes have, and where they are not those that their times show.
pub(super) struct Parents {
    flags: Vec<u8>,
    futures: HashMap<u64, u32>,
}

impl Parents {
    pub(super) fn new(trace: &Trace, times: Times<'_>) -> Self {
        let all = (0..).zip(&trace.scopes);
        let futures = all.filter(|(_, scope)| matches!(scope.kind, RecordKind::Future { .. }));
        let mut parents = Self {
            flags: vec![0; trace.scopes.len()],
            futures: futures
                .map(|(index, scope)| (scope.serial, index))
                .collect(),
        };
        let is_on_thread = |scope: &ScopeRecord| !matches!(scope.kind, RecordKind::Future { .. });
        let (scopes, _) = trace
            .scopes
            .split_at(trace.scopes.partition_point(is_on_thread));
        let mut first = 0;
        for thread in scopes.chunk_by(|one, next| one.thread == next.thread) {
            parents.compare(trace, times, first, thread);
            first += index_of(thread.len());
        }
        parents
    }

    /// Compares the parents of the scopes of a thread, from the index `first` on, with those around them as they are drawn.
    fn compare(&mut self, trace: &Trace, times: Times<'_>, first: u32, scopes: &[ScopeRecord]) {
        // The open slices with their ends, and the call that each of them is or belongs to.
        let mut open: Vec<(u32, i64, u32)> = Vec::new();
        for (index, scope) in (first..).zip(scopes) {
            let [start, end] = [scope.start, scope.end()].map(|ticks| times.of_ticks(ticks));
            while open.last().is_some_and(|(_, end, _)| *end <= start) {
                open.pop();
            }
            let is_beside = open.last().is_some_and(|(_, around, _)| end > *around);
            if is_beside {
                for (around, ..) in &open {
                    self.flags[*around as usize] |= SELF_TIME;
                }
            }
            if !scope.has_cpu {
                continue;
            }
            let around = open.last().filter(|_| !is_beside);
            let (drawn, call) = around.map_or((NONE, NONE), |(drawn, _, call)| (*drawn, *call));
            let own_call = if let RecordKind::Poll { future } = scope.kind {
                let future = self.future(trace, future);
                if future.is_none() {
                    // Its time counts for the scope around.
                    self.mark(drawn, SELF_TIME);
                }
                future.unwrap_or(call)
            } else {
                let parent = written(trace, trace.nodes[index as usize].parent);
                if parent != call {
                    self.mark(index, PARENT);
                    self.mark(parent, SELF_TIME);
                    self.mark(drawn, SELF_TIME);
                }
                index
            };
            if !is_beside {
                open.push((index, end, own_call));
            }
        }
    }

    /// Returns the future with this serial, if it has a slice.
    fn future(&self, trace: &Trace, serial: u64) -> Option<u32> {
        let future = self.futures.get(&serial).copied();
        future.filter(|future| trace.scopes[*future as usize].has_cpu)
    }

    fn mark(&mut self, scope: u32, flag: u8) {
        if let Some(flags) = self.flags.get_mut(scope as usize) {
            *flags |= flag;
        }
    }

    /// Returns the parent of a scope, a poll or a future if its time does not show it; [`NONE`] inside if it has none.
    pub(super) fn to_write(&self, trace: &Trace, index: usize) -> Option<u32> {
        let parent = || written(trace, trace.nodes[index].parent);
        match trace.scopes[index].kind {
            RecordKind::Poll { future } => self.future(trace, future),
            RecordKind::Future { .. } => Some(parent()).filter(|parent| *parent != NONE),
            RecordKind::Scope => Some(parent()).filter(|_| self.flags[index] & PARENT != 0),
        }
    }

    /// Returns `true` if the lengths of a scope and of those inside do not show its self time.
    pub(super) fn needs_self_time(&self, trace: &Trace, index: usize) -> bool {
        let is_future = matches!(trace.scopes[index].kind, RecordKind::Future { .. });
        is_future || self.flags[index] & SELF_TIME != 0
    }
}

/// Returns a scope, or the nearest one around it that has a slice.
fn written(trace: &Trace, mut scope: u32) -> u32 {
    while trace
        .scopes
        .get(scope as usize)
        .is_some_and(|scope| !scope.has_cpu)
    {
        scope = trace.nodes[scope as usize].parent;
    }
    scope
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the capacity of a window is less"
)]
fn index_of(index: usize) -> u32 {
    index as u32
}
