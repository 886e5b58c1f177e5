//! Names that calls pass as text: those built at run time, and all but the first of a
//! [`MultiNameSite`](super::MultiNameSite).
//!
//! Each thread keeps the decisions of the texts it has seen. A text that is new to the thread is looked up in the registry
//! of names, which takes a lock.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{decide, enter_or_refuse};
use crate::local;
use crate::name::{self, Name};
use crate::scope::builder::ScopeBuilder;
use crate::scope::{OpenScope, Scope};
use crate::switch::{self, SiteDecision, StampedDecision, with_control};

/// The key of names built at run time in [`local::cached_decision`]. All sites share these names. No site has this
/// address.
const RUN_TIME: usize = 0;

/// Returns `true` if the name of a call is wanted: calls are measured.
#[inline]
pub fn wants_name() -> bool {
    let switch = switch::load();
    !switch::is_off(switch) && (switch != switch::UNINITIALIZED || starts_enabled())
}

/// Returns `true` if calls are measured in a process whose profiler has not started.
#[cold]
fn starts_enabled() -> bool {
    // The lock of the switch, which the thread may hold.
    enter_or_refuse().is_some_and(|_reentrancy| switch::is_enabled())
}

/// Returns a scope that is not measured.
#[inline]
pub const fn no_scope() -> Scope {
    Scope::off()
}

/// Opens a scope under a name that was built at run time.
#[inline]
#[track_caller]
pub fn enter_dynamic(name: &(impl AsRef<str> + ?Sized)) -> Scope {
    open(name.as_ref(), Location::caller())
}

#[inline(never)]
fn open(text: &str, location: &'static Location<'static>) -> Scope {
    // Check `panicking()` first: nothing is live across the call, so no registers are saved.
    if std::thread::panicking() {
        return open_slow(text, location);
    }
    let decision = cached(RUN_TIME, text).and_then(|decision| decision.under(switch::load()));
    match decision.and_then(OpenScope::fast) {
        Some(open) => Scope::from(Some(open)),
        None if decision.is_some_and(SiteDecision::is_excluded) => Scope::off(),
        None => open_slow(text, location),
    }
}

#[cold]
#[inline(never)]
fn open_slow(text: &str, location: &'static Location<'static>) -> Scope {
    let decision = run_time_decision(text, location);
    Scope::from(decision.and_then(OpenScope::without_args))
}

/// Begins a call under a name that was built at run time.
#[track_caller]
pub fn begin_dynamic<'s>(name: &(impl AsRef<str> + ?Sized)) -> ScopeBuilder<'s> {
    ScopeBuilder::new(run_time_decision(name.as_ref(), Location::caller()), 1)
}

/// Returns what a call under a name that was built at run time does now, or `None` if it is not measured.
fn run_time_decision(text: &str, location: &'static Location<'static>) -> Option<SiteDecision> {
    let switch = switch::load();
    if switch::is_off(switch) {
        return None;
    }
    let decision = kept(RUN_TIME, text, switch).or_else(|| decide_run_time(text, switch, location));
    decision.filter(|decision| !decision.is_excluded())
}

#[cold]
fn decide_run_time(
    text: &str,
    switch: u32,
    location: &'static Location<'static>,
) -> Option<SiteDecision> {
    if text.len() > name::MAX_LENGTH {
        return decide_truncated(text, switch, location);
    }
    decide_short(text, switch, location)
}

/// Truncates the text, so that the tables of the threads hold no longer ones.
// Not inlined: the buffer would be in the stack frame of every call.
#[inline(never)]
fn decide_truncated(
    text: &str,
    switch: u32,
    location: &'static Location<'static>,
) -> Option<SiteDecision> {
    let mut buffer: name::Buffer = [0; name::MAX_LENGTH];
    let text = name::truncate_into(text, &mut buffer);
    kept(RUN_TIME, text, switch).or_else(|| decide_short(text, switch, location))
}

fn decide_short(
    text: &str,
    switch: u32,
    location: &'static Location<'static>,
) -> Option<SiteDecision> {
    let limit = || with_control(|control| control.settings.max_names);
    decide_for_text(RUN_TIME, switch, || {
        if !name::is_frozen() && !name::make_room(Some(text)) {
            return None;
        }
        let name = name::run_time(text, location, limit);
        Some((name, &*name.text))
    })
}

/// Returns the decision that the thread keeps for a text, if it holds. `site` distinguishes texts that mean different
/// names.
#[inline]
pub(super) fn kept(site: usize, text: &str, switch: u32) -> Option<SiteDecision> {
    cached(site, text).and_then(|cached| cached.under(switch))
}

#[inline(always)]
fn cached(site: usize, text: &str) -> Option<StampedDecision> {
    local::cached_decision(site, text).map(StampedDecision::from_raw)
}

/// Decides what calls of the name that `find` looks up do, and keeps the decision for a text, which is returned along with
/// the name. There is none if there is no memory for the name.
#[cold]
pub(super) fn decide_for_text(
    site: usize,
    switch: u32,
    find: impl FnOnce() -> Option<(&'static Name, &'static str)>,
) -> Option<SiteDecision> {
    // Deciding takes locks, which a call from within the profiler may find locked by its own thread.
    let _reentrancy = enter_or_refuse()?;
    let (name, text) = find()?;
    if name.text == name::OVERFLOW_NAME {
        return for_overflow(name, switch);
    }
    let decision = decide(name);
    local::cache_decision(site, text, decision.raw());
    decision.if_on()
}

/// Returns the decision for texts that get no name of their own. The tables of the threads do not hold these texts, since
/// their number is not bounded.
fn for_overflow(name: &Name, switch: u32) -> Option<SiteDecision> {
    static DECISION: AtomicU64 = AtomicU64::new(StampedDecision::NONE.raw());
    let stored = StampedDecision::from_raw(DECISION.load(Relaxed));
    stored.under(switch).or_else(|| {
        let decision = decide(name);
        DECISION.store(decision.raw(), Relaxed);
        decision.if_on()
    })
}
