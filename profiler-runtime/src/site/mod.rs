//! Call sites: the places in the source where calls are measured.
//!
//! - [`CallSite`]: an annotated function, or a scope with a literal name.
//! - [`MultiNameSite`]: a site whose calls have several names, of associated constants or generic functions.
//! - [`begin_dynamic`]: names that are built at run time.
//!
//! # Decisions
//!
//! A site decides once per generation of the [switch](crate::switch) what its calls do, and keeps the decision in one
//! atomic, a [`StampedDecision`], which is 0 until the first call. On the fast path, a call reads only the word that
//! follows from it (see [`SiteState`](crate::switch::SiteState)). A call on the slow path whose switch word differs from
//! the stamp decides again.
//!
//! Relaxed ordering suffices. The decision is complete in itself: it holds an id and flags, and no pointer that another
//! thread would have to initialize. Threads that decide at the same time store the same id; if the settings change
//! between them, the older stamp is not valid and the next call decides again.

mod call_site;
mod dynamic;
mod future;
mod multi_name;

use std::panic::Location;

use profiler_host::sync::ReentrancyGuard;

use crate::clock;
use crate::cuda::{self, nvtx};
use crate::losses;
use crate::name::{self, Name};
use crate::startup;
use crate::switch::{SiteDecision, StampedDecision, with_control};
pub use call_site::{CallSite, NEW_SITE};
pub use dynamic::{begin_dynamic, enter_dynamic, no_scope, wants_name};
pub use future::MeasureFuture;
pub use multi_name::{MultiNameSite, NEW_MULTI_NAME_SITE};

/// How to find the name of a call site: passed with each call, and used once per generation at most.
#[derive(Clone, Copy)]
struct NameSource {
    text: &'static str,
    /// `true` if `text` is a literal in the source, `false` if it is the type name of an item inside the function.
    is_literal: bool,
    location: &'static Location<'static>,
}

impl NameSource {
    /// The name is the path of the function, found through the type name of an item inside it.
    #[inline]
    #[track_caller]
    fn inside(text: &'static str) -> Self {
        Self {
            text,
            is_literal: false,
            location: Location::caller(),
        }
    }

    /// The name is a literal in the source.
    #[inline]
    #[track_caller]
    fn literal(text: &'static str) -> Self {
        Self {
            text,
            is_literal: true,
            location: Location::caller(),
        }
    }

    /// Returns the name; `None` if there is no memory for a new one.
    fn name(self) -> Option<&'static Name> {
        if !name::make_room(self.is_literal.then_some(self.text)) {
            return None;
        }
        Some(if self.is_literal {
            name::declared(self.text, self.location)
        } else {
            name::of_function(self.text, self.location)
        })
    }
}

/// Enters the profiler to decide what a call does: that takes locks, which a call from within the profiler may find locked
/// by its own thread. Such a call is counted as refused.
pub(crate) fn enter_or_refuse() -> Option<ReentrancyGuard> {
    let entered = ReentrancyGuard::try_enter();
    if entered.is_none() {
        losses::count_refused();
    }
    entered
}

/// Decides what calls of a name do.
pub(crate) fn decide(name: &Name) -> StampedDecision {
    // Both can change the settings and thereby start a new generation: before the decision.
    startup::ensure_started();
    startup::warn_of_unused_guard();
    if !cuda::is_in_use() {
        cuda::scan_loaded();
    }
    let decision = decide_with(name, cuda::is_in_use);
    if decision.if_on().is_some_and(|decision| !decision.is_cuda()) {
        cuda::begin_search();
    }
    let gives_ranges = |decision: SiteDecision| decision.has_ranges() && !decision.is_excluded();
    if decision.if_on().is_some_and(gives_ranges) {
        nvtx::register(name);
    }
    decision
}

/// Combines the settings with `has_driver`, which is called after the switch word was read.
///
/// Another thread that finds the driver publishes it first, and starts a new generation then. So a decision that carries
/// the new generation was made with the driver. In the other order, a decision could carry the new generation and lack
/// the driver, and would be kept.
fn decide_with(name: &Name, has_driver: impl FnOnce() -> bool) -> StampedDecision {
    let decision = with_control(|control| control.decide(name));
    decision
        .with(SiteDecision::SYSTEM_CLOCK, !clock::has_counter())
        .with(SiteDecision::CUDA, has_driver())
        // Read after the switch word, for the same reason.
        .with(SiteDecision::RANGES, nvtx::is_attached())
}

#[cfg(test)]
mod tests;
