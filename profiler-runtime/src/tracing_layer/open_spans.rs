//! The open spans of one layer, found by their ids.
//!
//! # Protocol
//!
//! A span has an entry from its creation until it is closed. The key of an entry is the id of the span, or 0 while the
//! entry is free. Keys are in lines of eight, which fill a cache line; an id can be in one line of each table. A span is
//! created once, and closed once after all else, so that one thread each inserts and removes it:
//!
//! - Inserting exchanges a free key for the id (`Acquire`) and then initializes the rest.
//! - Removing reads the rest and then frees the key (`Release`). So the next span in the entry finds it as it was left, and
//!   initializes it after that.
//! - Threads that enter the span in between have its id from the thread that created it, or from one that has: whatever
//!   passed it to them orders the initialization before their reads. They only add to the counts.
//!
//! Nothing waits, so a child forked at any time finds a table that works.
//!
//! Tables are allocated as they are needed, each four times as large as the one before, and are kept until the layer is
//! dropped. The most spans that can be open at once are thus 696,320, or fewer where ids collide.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::sites::SPREAD;
use crate::sync::{RaceCell, ReentrancyGuard};

/// Keys in a line.
const LINE: usize = 8;
/// The base 2 logarithm of the number of lines in the first table.
const FIRST_TABLE: u32 = 10;
const TABLES: usize = 4;

/// A span that is open.
#[derive(Debug)]
pub(super) struct OpenSpan {
    /// The number of its call site.
    site: AtomicU32,
    /// How often it was entered, in the upper half, and exited, in the lower half. Beyond 2³² the halves are wrong, and
    /// nothing else.
    entries: AtomicU64,
}

const ENTER: u64 = 1 << 32;

/// What became of a span until it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClosedSpan {
    pub(super) site: u32,
    pub(super) enters: u32,
    pub(super) exits: u32,
}

impl OpenSpan {
    pub(super) fn site(&self) -> u32 {
        self.site.load(Relaxed)
    }

    /// Notes that the span is entered. Returns `true` if it is entered already, on this thread or on another one.
    #[inline]
    pub(super) fn enter(&self) -> bool {
        let before = self.entries.fetch_add(ENTER, Relaxed);
        before >> 32 != before & (ENTER - 1)
    }

    /// Notes that the span is exited. Returns `true` if it was exited before.
    #[inline]
    pub(super) fn exit(&self) -> bool {
        self.entries.fetch_add(1, Relaxed) & (ENTER - 1) != 0
    }
}

#[repr(align(64))]
#[derive(Debug)]
struct Line([AtomicU64; LINE]);

#[derive(Debug)]
struct Table {
    lines: Box<[Line]>,
    spans: Box<[[OpenSpan; LINE]]>,
}

impl Table {
    /// Returns a table of 2ⁿ lines, or an empty one if there is no memory.
    fn new(bits: u32) -> Self {
        let _reentrancy = ReentrancyGuard::try_enter();
        let new_span = || OpenSpan {
            site: AtomicU32::new(0),
            entries: AtomicU64::new(0),
        };
        let (mut lines, mut spans) = (Vec::new(), Vec::new());
        let size = 1 << bits;
        if lines.try_reserve_exact(size).is_ok() && spans.try_reserve_exact(size).is_ok() {
            lines.extend((0..size).map(|_| Line([const { AtomicU64::new(0) }; LINE])));
            spans.extend((0..size).map(|_| std::array::from_fn(|_| new_span())));
        }
        Self {
            lines: lines.into(),
            spans: spans.into(),
        }
    }

    /// Returns the entries that a span can have.
    #[inline]
    fn line(&self, hash: u64) -> Option<(&Line, &[OpenSpan; LINE])> {
        // 0 for an empty table: no shift by 64.
        let bits = self.lines.len().checked_ilog2()?;
        #[allow(clippy::cast_possible_truncation, reason = "at most 16 bits")]
        let line = (hash >> (u64::BITS - bits)) as usize;
        Some((self.lines.get(line)?, self.spans.get(line)?))
    }
}

/// The open spans of one layer.
#[derive(Debug)]
pub(super) struct OpenSpans {
    tables: [RaceCell<Table>; TABLES],
}

/// Returns the hash of an id for one of the tables.
///
/// In the first table, the upper bits do not count, in which the registry counts how often a slot was used: a span in a
/// slot that is used again then has the line that its predecessor had, which is in the cache. In the others, all bits count, for
/// spans that collide in the first.
#[inline]
fn hash(id: u64, table: usize) -> u64 {
    let id = if table == 0 { id << 13 } else { id };
    id.wrapping_mul(SPREAD)
}

impl OpenSpans {
    pub(super) const fn new() -> Self {
        Self {
            tables: [const { RaceCell::new() }; TABLES],
        }
    }

    /// Adds a span. Returns `false` if there is no room.
    #[inline]
    pub(super) fn insert(&self, id: u64, site: u32) -> bool {
        (0..)
            .zip(&self.tables)
            .zip((FIRST_TABLE..).step_by(2))
            .any(|((number, table), bits)| {
                let table = table.get_or_init(|| Table::new(bits));
                let line = table.line(hash(id, number));
                line.is_some_and(|(keys, spans)| {
                    let mut entries = keys.0.iter().zip(spans);
                    let free = entries.find(|(key, _)| {
                        key.load(Relaxed) == 0
                            && key.compare_exchange(0, id, Acquire, Relaxed).is_ok()
                    });
                    if let Some((_, span)) = free {
                        span.site.store(site, Relaxed);
                        span.entries.store(0, Relaxed);
                    }
                    free.is_some()
                })
            })
    }

    #[inline]
    fn find(&self, id: u64) -> Option<(&AtomicU64, &OpenSpan)> {
        let tables = self.tables.iter().map_while(RaceCell::get);
        tables.enumerate().find_map(|(number, table)| {
            let (keys, spans) = table.line(hash(id, number))?;
            let mut entries = keys.0.iter().zip(spans);
            entries.find(|(key, _)| key.load(Relaxed) == id)
        })
    }

    /// Returns an open span, unless it is not measured.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<&OpenSpan> {
        Some(self.find(id)?.1)
    }

    /// Removes a span that is closed.
    #[inline]
    pub(super) fn remove(&self, id: u64) -> Option<ClosedSpan> {
        let (key, span) = self.find(id)?;
        let entries = span.entries.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "halves of a word")]
        let closed = ClosedSpan {
            site: span.site(),
            enters: (entries >> 32) as u32,
            exits: entries as u32,
        };
        key.store(0, Release);
        Some(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_found_until_it_is_closed() {
        let spans = OpenSpans::new();
        assert!(spans.insert(7, 3));
        let span = spans.get(7).expect("it is open");
        assert!(!span.enter() && span.enter());
        assert!(!span.exit() && span.exit());
        let closed = ClosedSpan {
            site: 3,
            enters: 2,
            exits: 2,
        };
        assert_eq!(spans.remove(7), Some(closed));
        assert!(spans.get(7).is_none() && spans.remove(7).is_none());
        assert!(spans.insert(7, 4));
        assert!(!spans.get(7).expect("it is open again").enter());
    }

    #[test]
    fn spans_that_collide_are_in_the_larger_tables() {
        let spans = OpenSpans::new();
        // They differ in the upper bits alone.
        let ids = || (1..=20_u64).map(|n| n << 51 | 1);
        assert!(ids().all(|id| spans.insert(id, 0)));
        assert!(ids().all(|id| spans.get(id).is_some()));
        assert!(ids().all(|id| spans.remove(id).is_some()));
        assert!(ids().all(|id| spans.get(id).is_none()));
    }

    #[cfg(not(miri))]
    #[test]
    fn spans_beyond_all_tables_are_refused_and_the_others_kept() {
        let spans = OpenSpans::new();
        let inserted: Vec<u64> = (1..1_000_000).filter(|id| spans.insert(*id, 0)).collect();
        assert!((400_000..700_000).contains(&inserted.len()), "{}", inserted.len());
        assert!(inserted.iter().all(|id| spans.remove(*id).is_some()));
        assert!(spans.insert(1, 0));
    }

    #[test]
    fn threads_that_insert_at_once_do_not_share_an_entry() {
        let spans = OpenSpans::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let spans = &spans;
                scope.spawn(move || {
                    for id in (1..2_000).map(|n| n * 4 + thread) {
                        assert!(spans.insert(id, 1));
                        assert!(!spans.get(id).expect("it is open").enter());
                        assert_eq!(spans.remove(id).map(|closed| closed.enters), Some(1));
                    }
                });
            }
        });
    }
}
