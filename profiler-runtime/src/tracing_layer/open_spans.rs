//! The open spans of one layer, found by their ids.
//!
//! # Protocol
//!
//! A span has an entry from its creation until it is closed. The key of an entry is the id of the span, or 0 while the
//! entry is free. An id can be in eight entries of each table, which stand side by side; nearly all are in the first. A span is created once, and closed once after all else, so that one thread each inserts and removes it:
//!
//! - Inserting exchanges a free key for the id (`Acquire`) and then initializes the rest.
//! - Removing reads the rest and then frees the key (`Release`). So the next span in the entry finds it as it was left, and
//!   initializes it after that.
//! - Threads that enter the span in between have its id from the thread that created it, or from one that has: whatever
//!   passed it to them orders the initialization before their reads. They only add to the counts.
//!
//! A span that was created while measuring was off is inserted when it is next entered. Several threads may enter it at once,
//! so a lock decides between them. They have its id already, so the key is stored last (`Release`); who finds it loads it with
//! `Acquire`. A relaxed load would not do: only the comparison of the key leads to the rest of the entry, whose address follows
//! from the id, and processors read ahead of a comparison. The pointer to the table is loaded with `Acquire` for the same
//! threads: the one that inserts such a span may be the first to allocate the table.
//!
//! Nothing else waits, so a child forked at any time finds a table that works.
//!
//! Tables are allocated as they are needed, each four times as large as the one before, and are kept until the layer is
//! dropped. Spans that are measured as a whole are in tables of their own, where they have room for their times: all that is
//! done with those is slow. At least 688,128 spans of each kind can be open at once, or fewer where ids collide.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use profiler_host::sync::{Lock, RaceCell, ReentrancyGuard};

use super::sites::SPREAD;
use super::whole::WholeTimes;
use crate::switch;

/// Entries of a table in which an id can be.
const PLACES: usize = 8;
/// The base 2 logarithm of the number of entries in the first table.
const FIRST_TABLE: u32 = 13;
const FIRST_SIZE: usize = 1 << FIRST_TABLE;
const TABLES: u32 = 4;
const LATER_TABLES: usize = TABLES as usize - 1;

/// An entry: a span that is open, or none.
#[derive(Debug)]
pub(super) struct OpenSpan {
    /// The id, or 0.
    key: AtomicU64,
    /// How often it was entered, in the upper half, and exited, in the lower half. Beyond 2³² the halves are wrong, and
    /// nothing else.
    entries: AtomicU64,
    /// The number of its call site, and [`MISSING`].
    site: AtomicU32,
    /// How often measuring had been turned off when it was created.
    times_off: AtomicU32,
}

const ENTER: u64 = 1 << 32;

/// The key of an entry that is not complete: the id of no span.
const INCOMPLETE: u64 = u64::MAX;

/// Held while a span is inserted that other threads may insert too.
static INSERTING: Lock<()> = Lock::new(());

/// A flag of [`OpenSpan::site`]: the span was entered, and its time was counted as missing or is not measured.
const MISSING: u32 = 1 << 31;

/// The life of a span, which is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClosedSpan {
    pub(super) site: u32,
    pub(super) enters: u32,
    pub(super) exits: u32,
    /// `true` if a time is missing that was counted as such, or that is not measured.
    pub(super) is_missing: bool,
    /// How often measuring had been turned off when the span was created.
    pub(super) times_off: u32,
}

impl ClosedSpan {
    /// Returns `true` if a time of the span had no exit.
    pub(super) fn is_entered(self) -> bool {
        self.enters != self.exits
    }
}

impl OpenSpan {
    pub(super) const fn new() -> Self {
        Self {
            key: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            site: AtomicU32::new(0),
            times_off: AtomicU32::new(0),
        }
    }

    /// Returns `true` if the entry is that of this span.
    #[inline(always)]
    pub(super) fn is(&self, id: u64) -> bool {
        self.key.load(Acquire) == id
    }

    /// Returns the number of the span's call site, perhaps with [`MISSING`], which [`sites::by_number`](super::sites::by_number)
    /// ignores.
    #[inline(always)]
    pub(super) fn site(&self) -> u32 {
        self.site.load(Relaxed)
    }

    /// Notes that the span was entered, and its time was counted as missing or is not measured.
    #[cold]
    pub(super) fn miss(&self) {
        self.site.fetch_or(MISSING, Relaxed);
    }

    /// Returns `true` if the span is entered. It is, if this thread has entered it.
    #[inline(always)]
    pub(super) fn is_entered(&self) -> bool {
        let entries = self.entries.load(Relaxed);
        entries >> 32 != entries & (ENTER - 1)
    }

    /// Notes that the span is entered.
    #[inline(always)]
    pub(super) fn enter(&self) {
        self.entries.fetch_add(ENTER, Relaxed);
    }

    /// Notes that the span is exited. Returns `true` if it was exited before.
    #[inline(always)]
    pub(super) fn exit(&self) -> bool {
        self.entries.fetch_add(1, Relaxed) & (ENTER - 1) != 0
    }

    /// Returns `true` if the span was entered and exited once.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.entries.load(Relaxed) == ENTER | 1
    }

    /// Returns what became of the span, which is closed.
    pub(super) fn closed(&self) -> ClosedSpan {
        let entries = self.entries.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "halves of a word")]
        ClosedSpan {
            site: self.site(),
            enters: (entries >> 32) as u32,
            exits: entries as u32,
            is_missing: self.site() & MISSING != 0,
            times_off: self.times_off.load(Relaxed),
        }
    }

    /// Makes a free entry that of a span, with its id or [`INCOMPLETE`] as the key. Returns `false` if it is not free.
    #[inline(always)]
    fn take(&self, key: u64, site: u32) -> bool {
        if self.key.compare_exchange(0, key, Acquire, Relaxed).is_err() {
            return false;
        }
        self.site.store(site, Relaxed);
        self.times_off.store(switch::times_off(), Relaxed);
        self.entries.store(0, Relaxed);
        true
    }

    /// Removes the span, which is closed.
    #[inline(always)]
    pub(super) fn remove(&self) {
        self.key.store(0, Release);
    }
}

/// The table in which nearly all spans are. Its size is known, so that finding an entry checks nothing.
type FirstTable = [OpenSpan; FIRST_SIZE];

/// Another table, without entries if there was no memory for it.
#[derive(Debug, Default)]
struct SpanTable {
    spans: Box<[OpenSpan]>,
    /// The times of spans that are measured as a whole; empty if none are.
    whole: Box<[WholeTimes]>,
}

impl SpanTable {
    #[cold]
    fn new(number: u32, kind: Kind) -> Self {
        let _reentrancy = ReentrancyGuard::try_enter();
        let size = 1 << bits_of(number);
        let spans = filled(size, OpenSpan::new);
        let whole = filled(if kind == Kind::Whole { size } else { 0 }, WholeTimes::new);
        match (spans, whole) {
            (Some(spans), Some(whole)) => Self { spans, whole },
            _ => Self::default(),
        }
    }
}

/// Returns the first table, or `None` if there is no memory for it.
#[cold]
fn first_table() -> Option<Box<FirstTable>> {
    let _reentrancy = ReentrancyGuard::try_enter();
    filled(FIRST_SIZE, OpenSpan::new)?.try_into().ok()
}

/// Returns `size` new values, or `None` if there is no memory for them.
fn filled<T>(size: usize, new: impl Fn() -> T) -> Option<Box<[T]>> {
    let mut values = Vec::new();
    values.try_reserve_exact(size).ok()?;
    values.extend((0..size).map(|_| new()));
    Some(values.into())
}

/// How a span is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each time that it is entered is a call.
    Entered,
    /// It is one call.
    Whole,
    /// It may be either, and takes the slow path until that is known.
    Undecided,
}

/// The open spans of one layer.
#[derive(Debug)]
pub(super) struct OpenSpans {
    first: RaceCell<FirstTable>,
    later: [RaceCell<SpanTable>; LATER_TABLES],
    /// Spans that are measured as a whole.
    whole: [RaceCell<SpanTable>; LATER_TABLES],
}

/// Returns the first place of a table in which a span can be.
///
/// In the first table, the upper bits of an id do not count, in which the registry counts how often a slot was used: a span
/// in a slot that is used again then has the entry that its predecessor had, which is in the cache. In the others, all bits
/// count, for spans that collide in the first.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "at most 19 bits")]
fn home_of(id: u64, table: u32) -> usize {
    let id = if table == 0 { id << 13 } else { id };
    (id.wrapping_mul(SPREAD) >> (u64::BITS - bits_of(table))) as usize
}

/// Returns the places of a table in which a span can be, with their entries.
fn places(spans: &[OpenSpan], table: u32, id: u64) -> impl Iterator<Item = (usize, &OpenSpan)> {
    let home = home_of(id, table);
    let last = spans.len().wrapping_sub(1);
    let places = (home..home + PLACES).map(move |place| place & last);
    places.filter_map(|place| Some((place, spans.get(place)?)))
}

impl OpenSpans {
    pub(super) const fn new() -> Self {
        Self {
            first: RaceCell::new(),
            later: [const { RaceCell::new() }; LATER_TABLES],
            whole: [const { RaceCell::new() }; LATER_TABLES],
        }
    }

    /// Adds a span where it most likely is. Returns `false` if there is no room.
    #[inline(always)]
    pub(super) fn insert_at_home(&self, id: u64, site: u32) -> bool {
        self.home(id).is_some_and(|span| span.take(id, site))
    }

    /// Adds a span. Returns `false` if there is no room.
    pub(super) fn insert(&self, id: u64, site: u32, kind: Kind) -> bool {
        self.insert_as(id, id, site, kind).is_some()
    }

    /// Adds a span that other threads know, and may add at the same time. Returns `false` if there is no room.
    pub(super) fn insert_late(&self, id: u64, site: u32, kind: Kind) -> bool {
        let _inserting = INSERTING.lock();
        if self.get(id).is_some() {
            return true;
        }
        let span = self.insert_as(id, INCOMPLETE, site, kind);
        span.inspect(|span| span.key.store(id, Release)).is_some()
    }

    fn insert_as(&self, id: u64, key: u64, site: u32, kind: Kind) -> Option<&OpenSpan> {
        // Where a span most likely is, it is found by the fast path.
        let passed_over = usize::from(kind == Kind::Undecided);
        if kind != Kind::Whole
            && let Some(first) = self.first.get_or_try_init(first_table)
            && let Some((_, span)) = places(first, 0, id)
                .skip(passed_over)
                .find(|(_, span)| span.take(key, site))
        {
            return Some(span);
        }
        let tables = match kind {
            Kind::Entered | Kind::Undecided => &self.later,
            Kind::Whole => &self.whole,
        };
        let mut tables = (1..).zip(tables);
        tables.find_map(|(number, table)| {
            let table = table.get_or_init(|| SpanTable::new(number, kind));
            let mut places = places(&table.spans, number, id);
            let (place, span) = places.find(|(_, span)| span.take(key, site))?;
            if let Some(whole) = table.whole.get(place) {
                whole.reset();
            }
            Some(span)
        })
    }

    /// Gives a span that took the slow path a second entry, where it most likely is, for what enters it from now on. The first
    /// one stays for threads that have entered the span.
    pub(super) fn move_home(&self, id: u64, site: u32) {
        if self.at_home(id).is_none()
            && let Some(home) = self.home(id)
            && home.take(INCOMPLETE, site)
        {
            // Not like the entry of a span that was entered once: its end has both to remove.
            home.entries.store(2 * (ENTER | 1), Relaxed);
            home.key.store(id, Release);
        }
    }

    /// Returns the entry in which a span most likely is.
    #[inline(always)]
    fn home(&self, id: u64) -> Option<&OpenSpan> {
        self.first.get()?.get(home_of(id, 0))
    }

    /// Returns an open span if it is where a span most likely is.
    #[inline(always)]
    pub(super) fn at_home(&self, id: u64) -> Option<&OpenSpan> {
        self.home(id).filter(|span| span.is(id))
    }

    /// Returns `true` if no span has been added.
    #[inline(always)]
    pub(super) fn is_unused(&self) -> bool {
        let tables = [&self.later[0], &self.whole[0]];
        self.first.get().is_none() && tables.iter().all(|table| table.get().is_none())
    }

    /// Returns an open span, unless it is not measured.
    pub(super) fn get(&self, id: u64) -> Option<&OpenSpan> {
        let first = self.first.get().into_iter();
        let mut in_first = first.flat_map(|first| places(first, 0, id));
        in_first
            .find_map(|(_, span)| span.is(id).then_some(span))
            .or_else(|| Some(find(&self.later, id)?.1))
            .or_else(|| Some(find(&self.whole, id)?.1))
    }

    /// Returns the times of an open span that is measured as a whole.
    pub(super) fn whole(&self, id: u64) -> Option<&WholeTimes> {
        let (place, _, table) = find(&self.whole, id)?;
        table.whole.get(place)
    }
}

fn find(tables: &[RaceCell<SpanTable>], id: u64) -> Option<(usize, &OpenSpan, &SpanTable)> {
    let tables = tables.iter().map_while(RaceCell::get);
    (1..).zip(tables).find_map(|(number, table)| {
        let mut places = places(&table.spans, number, id);
        let (place, span) = places.find(|(_, span)| span.is(id))?;
        Some((place, span, table))
    })
}

/// Returns the base 2 logarithm of the number of entries in a table.
const fn bits_of(table: u32) -> u32 {
    FIRST_TABLE + 2 * table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_found_until_it_is_closed() {
        let spans = OpenSpans::new();
        assert!(spans.insert(7, 3, Kind::Entered));
        let found = spans.get(7).expect("it is open");
        let span = found;
        assert!(!span.is_entered());
        span.enter();
        span.enter();
        assert!(!span.exit());
        assert!(span.is_entered());
        assert!(span.exit());
        assert!(!span.is_entered());
        let closed = ClosedSpan {
            site: 3,
            enters: 2,
            exits: 2,
            is_missing: false,
            times_off: switch::times_off(),
        };
        assert_eq!(found.closed(), closed);
        found.remove();
        assert!(spans.get(7).is_none());
        assert!(spans.insert(7, 4, Kind::Entered));
        assert!(!spans.get(7).expect("it is open again").is_entered());
    }

    #[test]
    fn spans_that_are_measured_as_a_whole_are_apart() {
        let spans = OpenSpans::new();
        assert!(spans.is_unused());
        assert!(spans.insert(7, 3, Kind::Whole) && spans.insert(8, 4, Kind::Entered));
        assert!(spans.at_home(7).is_none() && spans.at_home(8).is_some());
        assert!(spans.whole(7).is_some() && spans.whole(8).is_none());
        assert_eq!(spans.get(7).map(OpenSpan::site), Some(3));
    }

    #[test]
    fn spans_that_collide_are_in_the_larger_tables() {
        let spans = OpenSpans::new();
        // They differ in the upper bits alone.
        let ids = || (1..=20_u64).map(|n| n << 51 | 1);
        assert!(ids().all(|id| spans.insert(id, 0, Kind::Entered)));
        assert!(ids().all(|id| spans.get(id).is_some()));
        for found in ids().filter_map(|id| spans.get(id)) {
            found.remove();
        }
        assert!(ids().all(|id| spans.get(id).is_none()));
    }

    #[cfg(not(miri))]
    #[test]
    fn spans_beyond_all_tables_are_refused_and_the_others_kept() {
        let spans = OpenSpans::new();
        let inserted: Vec<u64> = (1..1_000_000)
            .filter(|id| spans.insert(*id, 0, Kind::Entered))
            .collect();
        assert!(
            (400_000..700_000).contains(&inserted.len()),
            "{}",
            inserted.len()
        );
        for id in &inserted {
            spans.get(*id).expect("it is open").remove();
        }
        assert!(spans.insert(1, 0, Kind::Entered));
    }

    #[test]
    fn threads_that_insert_one_span_late_share_its_entry() {
        let spans = OpenSpans::new();
        for id in 1..200 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        assert!(spans.insert_late(id, 5, Kind::Entered));
                        let span = spans.get(id).expect("it is open");
                        assert_eq!(span.site(), 5);
                        span.enter();
                    });
                }
            });
            let span = spans.get(id).expect("it is open");
            assert_eq!(span.closed().enters, 4);
            span.remove();
            assert!(spans.get(id).is_none());
        }
    }

    #[test]
    fn threads_that_insert_at_once_do_not_share_an_entry() {
        let spans = OpenSpans::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let spans = &spans;
                scope.spawn(move || {
                    for id in (1..2_000).map(|n| n * 4 + thread) {
                        assert!(spans.insert(id, 1, Kind::Entered));
                        let found = spans.get(id).expect("it is open");
                        found.enter();
                        assert_eq!(found.closed().enters, 1);
                        found.remove();
                    }
                });
            }
        });
    }
}
