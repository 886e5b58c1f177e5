//! Names that calls pass as text: those built at run time, and all but the first of a
//! [`MultiNameSite`](super::MultiNameSite).
//!
//! Each thread keeps the decisions of the texts it has seen. A text that is new to the thread is looked up in the registry
//! of names, which takes a lock.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{decide, valid};
use crate::local;
use crate::name::{self, Name};
use crate::scope::builder::ScopeBuilder;
use crate::switch::{self, SiteDecision, StampedDecision, with_control};
use crate::sync::ReentrancyGuard;

/// The key of names built at run time in [`local::cached_decision`]. All sites share these names. No site has this
/// address.
const RUN_TIME: usize = 0;

/// Begins a call under a name that was built at run time.
#[track_caller]
pub fn begin_dynamic<'s>(name: &(impl AsRef<str> + ?Sized)) -> ScopeBuilder<'s> {
    let switch = switch::load();
    if switch::is_off(switch) {
        return ScopeBuilder::off();
    }
    let location = Location::caller();
    let text = name.as_ref();
    let Some(_reentrancy) = ReentrancyGuard::try_enter() else {
        return ScopeBuilder::off();
    };
    let limit = || with_control(|control| control.settings.max_names);
    let find = || name::run_time(text, location, limit);
    let decision = decision_for_text(RUN_TIME, text, switch, find);
    ScopeBuilder::new(decision.filter(|decision| !decision.is_excluded()), 1)
}

/// Returns the decision for a text. `site` distinguishes texts that mean different names; `find` looks the name up.
pub(super) fn decision_for_text(
    site: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    if text.len() > name::MAX_LENGTH {
        return for_long_text(site, text, switch, find);
    }
    for_short_text(site, text, switch, find)
}

/// Truncates the text, so that the maps of the threads hold no longer ones.
// Not inlined: the buffer would be in the stack frame of every call.
#[cold]
#[inline(never)]
fn for_long_text(
    site: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    let mut buffer: name::Buffer = [0; name::MAX_LENGTH];
    for_short_text(site, name::truncate_into(text, &mut buffer), switch, find)
}

fn for_short_text(
    site: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    let cached = local::cached_decision(site, text).map(StampedDecision::from_raw);
    if let Some(decision) = cached.and_then(|cached| valid(cached, switch)) {
        return Some(decision);
    }
    let name = find();
    if name.text == name::OVERFLOW_NAME {
        return for_overflow(name, switch);
    }
    let decision = decide(name);
    local::cache_decision(site, text, decision.raw());
    decision.if_on()
}

/// Returns the decision for texts that get no name of their own. The maps of the threads do not hold these texts, since
/// their number is not bounded.
fn for_overflow(name: &Name, switch: u32) -> Option<SiteDecision> {
    static DECISION: AtomicU64 = AtomicU64::new(StampedDecision::NONE.raw());
    let stored = StampedDecision::from_raw(DECISION.load(Relaxed));
    valid(stored, switch).or_else(|| {
        let decision = decide(name);
        DECISION.store(decision.raw(), Relaxed);
        decision.if_on()
    })
}
