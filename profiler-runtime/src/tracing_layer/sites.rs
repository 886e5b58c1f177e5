//! Call sites of spans, found by the address of their metadata.
//!
//! The table has a fixed size, and its entries are never removed. A site takes an entry when a span of it is first
//! created: the exchange of the key decides between threads that come at once. The decision is that of a
//! [`CallSite`](crate::site::CallSite): one word, complete in itself, so that relaxed ordering suffices. The key is
//! stored with relaxed ordering as well: nothing else in an entry is read because of it that would have to be initialized.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tracing::Metadata;

use super::naming::name_of;
use crate::local;
use crate::losses;
use crate::name::{self, Name};
use crate::site;
use crate::stats::StatCell;
use crate::switch::{SiteDecision, StampedDecision};

/// The number of call sites that the table distinguishes.
const SITES: usize = 4096;
/// Spreads addresses over the table: the golden ratio, as a fraction of 2⁶⁴.
pub(super) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A call site of spans.
pub(super) struct SpanSite {
    /// The address of the metadata, with [`WHOLE`] and [`UNDECIDED`]; or 0.
    key: AtomicUsize,
    /// The [`StampedDecision`].
    decision: AtomicU64,
}

/// A flag of [`SpanSite::key`]: spans are measured as a whole. The address alone does not match then, so that they take the
/// slow path.
const WHOLE: usize = 1;
/// Likewise: no span has been closed, so that it is not known whether they are those of futures. The decision is not current then
/// either, so that entering takes the slow path too.
const UNDECIDED: usize = 2;
const FLAGS: usize = WHOLE | UNDECIDED;
const _: () = assert!(align_of::<Metadata<'static>>() > FLAGS);

static TABLE: [SpanSite; SITES] = [const {
    SpanSite {
        key: AtomicUsize::new(0),
        decision: AtomicU64::new(StampedDecision::NONE.raw()),
    }
}; SITES];

/// Returns the site with this number, of which only the bits count that a number has.
#[inline(always)]
pub(super) fn by_number(number: u32) -> &'static SpanSite {
    &TABLE[number as usize % SITES]
}

/// Runs `count` on a cell of the site's name.
pub(super) fn with_cell(site: u32, count: impl FnOnce(&StatCell)) {
    let Some(decision) = by_number(site).last_decision() else {
        return;
    };
    let id = decision.id();
    match local::cell(id) {
        Ok(cell) => {
            count(cell);
            local::give_back(cell);
        }
        Err(_) => {
            if let Some(name) = name::by_id(id) {
                name.count_without_cell(count);
            }
        }
    }
}

/// Returns the site of a span and its number, if it is where the search begins.
#[inline(always)]
pub(super) fn of(metadata: &'static Metadata<'static>) -> Option<(u32, &'static SpanSite)> {
    let address = address_of(metadata);
    let number = first_place(address);
    let site = by_number(number);
    (site.key.load(Relaxed) == address).then_some((number, site))
}

/// Returns the site of a span and its number, or `None` if there are too many.
pub(super) fn search(metadata: &'static Metadata<'static>) -> Option<(u32, &'static SpanSite)> {
    search_address(address_of(metadata))
}

#[inline(always)]
fn address_of(metadata: &'static Metadata<'static>) -> usize {
    std::ptr::from_ref(metadata).addr()
}

/// Returns the number of the entry in which the search begins.
#[inline(always)]
fn first_place(address: usize) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "less than SITES")]
    let number = ((address as u64).wrapping_mul(SPREAD) >> (u64::BITS - SITES.ilog2())) as u32;
    number
}

/// Looks further for a call site, and gives it the next free entry if it has none.
fn search_address(address: usize) -> Option<(u32, &'static SpanSite)> {
    let first = first_place(address);
    #[allow(clippy::cast_possible_truncation, reason = "it fits")]
    let mut numbers = (first..SITES as u32).chain(0..first);
    numbers.find_map(|number| {
        let site = by_number(number);
        let key = site.key.load(Relaxed);
        let is_found = key & !FLAGS == address || (key == 0 && site.take(address));
        is_found.then_some((number, site))
    })
}

impl SpanSite {
    /// Makes an empty entry that of a call site. Returns `false` if it is another one's by now.
    fn take(&self, address: usize) -> bool {
        let taken = self
            .key
            .compare_exchange(0, address | UNDECIDED, Relaxed, Relaxed);
        match taken {
            Ok(_) => {
                losses::note_span();
                true
            }
            Err(key) => key & !FLAGS == address,
        }
    }

    /// Measures spans as a whole from the next one on.
    pub(super) fn set_whole(&self) {
        self.key.fetch_or(WHOLE, Relaxed);
    }

    /// Decides that each time of a span is a call, unless they are measured as a whole.
    pub(super) fn settle(&self) {
        if self.is_undecided() {
            self.key.fetch_and(!UNDECIDED, Relaxed);
        }
    }

    /// Returns `true` until it is known whether spans are those of futures.
    pub(super) fn is_undecided(&self) -> bool {
        self.key.load(Relaxed) & FLAGS == UNDECIDED
    }

    /// Returns `true` if spans are measured as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.key.load(Relaxed) & WHOLE != 0
    }

    #[inline(always)]
    fn stored(&self) -> StampedDecision {
        StampedDecision::from_raw(self.decision.load(Relaxed))
    }

    /// Returns what was decided under this switch word, if anything was.
    #[inline(always)]
    pub(super) fn decided(&self, switch: u32) -> Option<SiteDecision> {
        self.stored().under(switch)
    }

    /// Returns what spans of the site do now, or `None` if they are not measured.
    pub(super) fn decision(&self, switch: u32) -> Option<SiteDecision> {
        let decision = self.decided(switch).or_else(|| self.decide(|| None));
        decision.filter(|decision| !decision.is_excluded())
    }

    /// Decides what spans of the site do, for a new one. Returns `true` if they are measured.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_new(&self, metadata: &'static Metadata<'static>) -> bool {
        let decision = self.decide(|| name::make_room(None).then(|| name_of(metadata)));
        decision.is_some_and(|decision| !decision.is_excluded())
    }

    /// Decides what the site's spans do, and stores the decision.
    fn decide(&self, name: impl FnOnce() -> Option<&'static Name>) -> Option<SiteDecision> {
        let _reentrancy = site::enter_or_refuse()?;
        let known = self.stored().id().and_then(name::by_id);
        let decision = site::decide(known.or_else(name)?);
        let stored = if self.is_undecided() {
            decision.not_current()
        } else {
            decision
        };
        self.decision.store(stored.raw(), Relaxed);
        decision.if_on()
    }

    /// Returns what was decided last, under whatever switch word.
    pub(super) fn last_decision(&self) -> Option<SiteDecision> {
        self.stored().last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_entry_however_many_collide() {
        // Addresses that no metadata has.
        let addresses: Vec<usize> = (1..=200).map(|n| n << 40).collect();
        let number = |address| search_address(address).map(|(number, _)| number);
        let first: Vec<_> = addresses.iter().map(|address| number(*address)).collect();
        let again: Vec<_> = addresses.iter().map(|address| number(*address)).collect();
        assert_eq!(first, again);
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), addresses.len());
    }
}
