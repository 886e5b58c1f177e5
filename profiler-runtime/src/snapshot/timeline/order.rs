//! The order of a window's records in a time line.

use crate::session::{NONE, RecordKind, ScopeRecord};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Waits,
    Done,
}

/// Returns the indices of all records in the order of their starts, each one after its parent and after those that its
/// thread opened before.
pub(super) fn in_order(scopes: &[ScopeRecord], parents: &[u32]) -> Vec<u32> {
    let mut by_start: Vec<u32> = (0..).zip(scopes).map(|(index, _)| index).collect();
    by_start.sort_by_key(|index| scopes[*index as usize].start);
    let mut order = Vec::with_capacity(scopes.len());
    let mut visits = vec![Visit::New; scopes.len()];
    let mut waiting = Vec::new();
    for first in by_start {
        waiting.push(first);
        // Where the clocks of two processors differ a little, a child may seem to begin before its parent. A record that
        // waits for itself, which no window has, would not be waited for.
        while let Some(index) = waiting.last().copied() {
            let visit = &mut visits[index as usize];
            match std::mem::replace(visit, Visit::Done) {
                Visit::New => {
                    *visit = Visit::Waits;
                    let before = [opened_before(scopes, index), parents[index as usize]];
                    let is_new = |index: &u32| visits.get(*index as usize) == Some(&Visit::New);
                    waiting.extend(before.into_iter().filter(is_new));
                }
                Visit::Waits => {
                    order.push(index);
                    waiting.pop();
                }
                Visit::Done => {
                    waiting.pop();
                }
            }
        }
    }
    order
}

/// Returns the record that the thread opened before. Futures stand behind all others and belong to no thread.
fn opened_before(scopes: &[ScopeRecord], index: u32) -> u32 {
    let scope = &scopes[index as usize];
    let is_before = |before: &ScopeRecord| {
        before.thread == scope.thread && !matches!(scope.kind, RecordKind::Future { .. })
    };
    let before = index.checked_sub(1);
    let before = before.filter(|before| is_before(&scopes[*before as usize]));
    before.unwrap_or(NONE)
}
