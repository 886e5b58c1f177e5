//! The state of a call site, and the list of all sites.
//!
//! A site has a *word* that says what a call does on the fast path. The word follows from the site's decision and the
//! switch, and is brought up to date when one of them changes: so a call loads one word, which is also all that it does
//! while measuring is off or the filter excludes its name.
//!
//! # Protocol
//!
//! The decision, the word and the list are written with the lock of the switch held. Calls load the word with relaxed
//! ordering, as they load the switch: a call may see a change late, but never waits. The word is complete in itself; the
//! cell that it leads to belongs to the calling thread.
//!
//! A site is added to the list before its word is first set, and stays there: sites are statics. The list does not
//! depend on the lock, whose state is lost in a child that was forked while another thread held it. In such a child, words
//! that the thread had not reached yet keep their old state until the switch is next used; that starts a new generation.

use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use super::site_decision::{SiteDecision, StampedDecision};
use super::{is_off, with_control};
use crate::local::{id_at, slot_index};

/// The decision of a call site, and its word.
#[derive(Debug)]
pub(crate) struct SiteState {
    /// [`OFF`](Self::OFF), [`UNDECIDED`](Self::UNDECIDED), [`FLAGGED`](Self::FLAGGED), or the [`slot_index`] of the site's
    /// name.
    word: AtomicU32,
    /// The [`StampedDecision`].
    decision: AtomicU64,
    /// The site that was added to the list before this one, or [`END`]. Null: this one is not in the list.
    previous: AtomicPtr<Self>,
}

/// The site that was added last, or null.
static LAST: AtomicPtr<SiteState> = AtomicPtr::new(ptr::null_mut());

/// The first site of the list points to this one, which is not part of it.
static END: SiteState = SiteState::NEW;

/// `true` in a child that was forked while another thread held the lock of the switch, perhaps between the two stores that
/// add a site to the list.
static MAY_LACK_SITE: AtomicBool = AtomicBool::new(false);

impl SiteState {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the initial value of statics"
    )]
    pub(crate) const NEW: Self = Self {
        word: AtomicU32::new(Self::UNDECIDED),
        decision: AtomicU64::new(StampedDecision::NONE.raw()),
        previous: AtomicPtr::new(ptr::null_mut()),
    };

    /// The slow path finds out what a call does. No name has this index.
    pub(crate) const UNDECIDED: u32 = 0;
    /// Calls are not measured.
    pub(crate) const OFF: u32 = u32::MAX;
    /// The decision holds, and says more than the fast path can do. No name has this index.
    pub(crate) const FLAGGED: u32 = u32::MAX - 1;

    /// Returns the word: [`OFF`](Self::OFF), or the index of a slot, which is empty if the fast path will not do. The slots of
    /// [`UNDECIDED`](Self::UNDECIDED) and [`FLAGGED`](Self::FLAGGED) are empty on all threads.
    #[inline(always)]
    pub(crate) fn word(&self) -> u32 {
        self.word.load(Relaxed)
    }

    /// Returns the decision that a word stands for, if it is one that the fast path can do.
    #[inline]
    pub(crate) fn plain_decision(word: u32) -> Option<SiteDecision> {
        // One comparison also finds `UNDECIDED`: `id_at` wraps it around to the largest id.
        let id = id_at(word);
        (id < id_at(Self::FLAGGED)).then(|| SiteDecision::new(id))
    }

    /// Returns the decision that was last stored.
    #[inline]
    pub(crate) fn decision(&self) -> StampedDecision {
        StampedDecision::from_raw(self.decision.load(Relaxed))
    }

    /// Stores a decision, if one is given, and brings the word up to date. The caller has entered the profiler.
    pub(crate) fn settle(&'static self, decision: Option<StampedDecision>) {
        with_control(|control| {
            if let Some(decision) = decision {
                self.decision.store(decision.raw(), Relaxed);
            }
            self.add_to_list();
            self.follow(control.word());
        });
    }

    /// Adds the site to the list, if it is not there. Called with the lock of the switch held.
    fn add_to_list(&'static self) {
        let is_marked = !self.previous.load(Relaxed).is_null();
        let is_listed = || all().any(|site| ptr::eq(site, self));
        if is_marked && (!MAY_LACK_SITE.load(Relaxed) || is_listed()) {
            return;
        }
        let last = LAST.load(Relaxed);
        let previous = if last.is_null() {
            ptr::from_ref(&END).cast_mut()
        } else {
            last
        };
        self.previous.store(previous, Relaxed);
        LAST.store(ptr::from_ref(self).cast_mut(), Release);
    }

    /// Sets the word to what the decision says under this switch word. Called with the lock of the switch held.
    fn follow(&self, switch: u32) {
        let word = match self.decision().under(switch) {
            _ if is_off(switch) => Self::OFF,
            Some(decision) if decision.is_excluded() => Self::OFF,
            Some(decision) if decision.is_plain() => slot_index(decision.id()),
            Some(_) => Self::FLAGGED,
            None => Self::UNDECIDED,
        };
        self.word.store(word, Relaxed);
    }
}

/// Returns all sites of the list.
fn all() -> impl Iterator<Item = &'static SiteState> {
    // SAFETY: each pointer in the list is that of a static, or null at a list without sites.
    let site = |pointer: &AtomicPtr<SiteState>| unsafe { pointer.load(Acquire).as_ref() };
    let sites = iter::successors(site(&LAST), move |later| site(&later.previous));
    sites.take_while(|site| !ptr::eq(*site, &raw const END))
}

/// Notes that this process was forked while another thread held the lock of the switch.
pub(super) fn forked_while_locked() {
    MAY_LACK_SITE.store(true, Relaxed);
}

/// Brings the words of all sites up to date. Called with the lock of the switch held.
pub(super) fn follow_all(switch: u32) {
    all().for_each(|site| site.follow(switch));
}
