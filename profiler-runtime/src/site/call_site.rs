//! Call sites with one name.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{NameSource, decide, valid};
use crate::name;
use crate::scope::builder::ScopeBuilder;
use crate::scope::future::FutureScope;
use crate::scope::{OpenScope, Scope, ScopeArgs};
use crate::switch::{self, SiteDecision, StampedDecision};
use crate::sync::ReentrancyGuard;

/// A call site with one name: a static in the annotated function, declared by the macros.
///
/// It is one word with the same initial value at every site, so that a thousand sites cost the compiler little. The
/// values that differ are passed with each call.
#[derive(Debug)]
pub struct CallSite {
    /// The [`StampedDecision`].
    decision: AtomicU64,
}

impl CallSite {
    /// A site that has not decided yet.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the initial value of statics"
    )]
    pub const NEW: Self = Self {
        decision: AtomicU64::new(StampedDecision::NONE.raw()),
    };

    /// Opens a scope that ends when the guard is dropped. `inside` is the type name of an item inside the function.
    // In debug builds the inlined code would be repeated in each function.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    pub fn enter(&'static self, inside: &'static str) -> Scope {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Scope::off();
        }
        self.open::<false>(switch, inside, Location::caller())
    }

    /// Opens a scope that ends when the guard is dropped. The name is a literal in the source.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    pub fn enter_named(&'static self, name: &'static str) -> Scope {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Scope::off();
        }
        self.open::<true>(switch, name, Location::caller())
    }

    #[inline(never)]
    fn open<const IS_LITERAL: bool>(
        &'static self,
        switch: u32,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        // Check `panicking()` first: nothing is live across the call, so no registers are saved.
        if std::thread::panicking() {
            return self.open_slow(text, IS_LITERAL, location);
        }
        let decision = self.stored().under(switch);
        match decision.and_then(OpenScope::fast) {
            Some(open) => Scope::from(Some(open)),
            None if decision.is_some_and(SiteDecision::is_excluded) => Scope::off(),
            None => self.open_slow(text, IS_LITERAL, location),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_slow(
        &'static self,
        text: &'static str,
        is_literal: bool,
        location: &'static Location<'static>,
    ) -> Scope {
        let source = NameSource {
            text,
            is_literal,
            location,
        };
        let decision = self.decision(switch::load(), source);
        let open = decision
            .and_then(|decision| OpenScope::slow(decision, 1, None, &mut ScopeArgs::default()));
        Scope::from(open)
    }

    /// Begins a call with arguments, of which one in `every` is logged. `inside` is the type name of an item inside the
    /// function.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::inside(inside), every)
    }

    /// Begins a call with arguments, of which one in `every` is logged. The name is a literal in the source.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::literal(name), every)
    }

    /// Returns the scope of a future without arguments. `inside` is the type name of an item inside the function.
    // Not inlined: the builder would take space in the frame of the future, which stays while inner ones are polled.
    #[inline(never)]
    #[track_caller]
    pub fn task(&'static self, inside: &'static str) -> FutureScope {
        self.begin_from(NameSource::inside(inside), 1)
            .plain_future()
    }

    /// Returns the scope of a future without arguments. The name is a literal in the source.
    #[inline(never)]
    #[track_caller]
    pub fn task_named(&'static self, name: &'static str) -> FutureScope {
        self.begin_from(NameSource::literal(name), 1).plain_future()
    }

    #[inline]
    fn begin_from<'s>(&'static self, source: NameSource, every: u32) -> ScopeBuilder<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return ScopeBuilder::off();
        }
        ScopeBuilder::new(self.decision(switch, source), every)
    }

    /// Returns what a call does now, or `None` if it is not measured.
    #[inline]
    pub(super) fn decision(&'static self, switch: u32, source: NameSource) -> Option<SiteDecision> {
        let decision = valid(self.stored(), switch).or_else(|| self.decide(source));
        decision.filter(|decision| !decision.is_excluded())
    }

    /// Decides what the site's calls do, and stores the decision.
    #[cold]
    fn decide(&'static self, source: NameSource) -> Option<SiteDecision> {
        let _reentrancy = ReentrancyGuard::try_enter()?;
        // An older decision has the id of the name.
        let known = self.stored().id().and_then(name::by_id);
        let decision = decide(known.unwrap_or_else(|| source.name()));
        self.decision.store(decision.raw(), Relaxed);
        decision.if_on()
    }

    #[inline]
    fn stored(&self) -> StampedDecision {
        StampedDecision::from_raw(self.decision.load(Relaxed))
    }
}
