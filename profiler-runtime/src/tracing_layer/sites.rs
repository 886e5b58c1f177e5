//! Call sites of spans, found by the address of their metadata.
//!
//! The table has a fixed size, and its entries are never removed. A site takes an entry when a span of it is first
//! created: the exchange of the key decides between threads that come at once. The decision is that of a
//! [`CallSite`](crate::site::CallSite): one word, complete in itself, so that relaxed ordering suffices. The key is
//! stored with relaxed ordering as well: nothing else in an entry is read because of it that would have to be initialized.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tracing::Metadata;

use super::naming::name_of;
use crate::diagnostics;
use crate::name;
use crate::site;
use crate::switch::{SiteDecision, StampedDecision};
use crate::sync::ReentrancyGuard;

/// The number of call sites that are told apart.
const SITES: usize = 4096;
/// Spreads addresses over the table: the golden ratio, as a fraction of 2⁶⁴.
pub(super) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A call site of spans.
pub(super) struct SpanSite {
    /// The address of the metadata, or 0.
    key: AtomicUsize,
    /// The [`StampedDecision`].
    decision: AtomicU64,
}

static TABLE: [SpanSite; SITES] = [const {
    SpanSite {
        key: AtomicUsize::new(0),
        decision: AtomicU64::new(StampedDecision::NONE.raw()),
    }
}; SITES];

/// Returns the site with this number.
#[inline]
pub(super) fn by_number(number: u32) -> Option<&'static SpanSite> {
    TABLE.get(number as usize)
}

/// Returns the site of a span and its number, or `None` if there are too many.
#[inline]
pub(super) fn of(metadata: &'static Metadata<'static>) -> Option<(u32, &'static SpanSite)> {
    of_address(std::ptr::from_ref(metadata).addr())
}

#[inline]
fn of_address(address: usize) -> Option<(u32, &'static SpanSite)> {
    let first = (address as u64).wrapping_mul(SPREAD) >> (u64::BITS - SITES.ilog2());
    for number in (first..SITES as u64).chain(0..first) {
        #[allow(clippy::cast_possible_truncation, reason = "at most SITES")]
        let number = number as u32;
        let site = by_number(number)?;
        let key = site.key.load(Relaxed);
        if key == address || (key == 0 && site.take(address)) {
            return Some((number, site));
        }
    }
    None
}

impl SpanSite {
    /// Makes an empty entry that of a call site. Returns `false` if it is another one's by now.
    #[cold]
    fn take(&self, address: usize) -> bool {
        match self.key.compare_exchange(0, address, Relaxed, Relaxed) {
            Ok(_) => {
                diagnostics::note_span();
                true
            }
            Err(key) => key == address,
        }
    }

    /// Returns what spans of the site do now, or `None` if they are not measured.
    #[inline]
    pub(super) fn decision(&self, switch: u32) -> Option<SiteDecision> {
        self.decision_or(switch, || None)
    }

    /// Returns what a new span of the site does.
    #[inline]
    pub(super) fn decision_of_new(
        &self,
        switch: u32,
        metadata: &'static Metadata<'static>,
    ) -> Option<SiteDecision> {
        self.decision_or(switch, || Some(name_of(metadata)))
    }

    #[inline]
    fn decision_or(
        &self,
        switch: u32,
        name: impl FnOnce() -> Option<&'static name::Name>,
    ) -> Option<SiteDecision> {
        let stored = StampedDecision::from_raw(self.decision.load(Relaxed));
        let decision = site::valid(stored, switch).or_else(|| self.decide(name));
        decision.filter(|decision| !decision.is_excluded())
    }

    /// Decides what the site's spans do, and stores the decision.
    #[cold]
    fn decide(
        &self,
        name: impl FnOnce() -> Option<&'static name::Name>,
    ) -> Option<SiteDecision> {
        let _reentrancy = ReentrancyGuard::try_enter()?;
        let stored = StampedDecision::from_raw(self.decision.load(Relaxed));
        let known = stored.id().and_then(name::by_id);
        let decision = site::decide(known.or_else(name)?);
        self.decision.store(decision.raw(), Relaxed);
        decision.if_on()
    }

    /// Returns the id of the site's name.
    pub(super) fn name(&self) -> Option<u32> {
        StampedDecision::from_raw(self.decision.load(Relaxed)).id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_entry_however_many_collide() {
        // Addresses of one test alone; other tests of this process create no spans.
        let addresses: Vec<usize> = (1..=200).map(|n| n << 40).collect();
        let number = |address| of_address(address).map(|(number, _)| number);
        let first: Vec<_> = addresses.iter().map(|address| number(*address)).collect();
        let again: Vec<_> = addresses.iter().map(|address| number(*address)).collect();
        assert_eq!(first, again);
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), addresses.len());
    }
}
