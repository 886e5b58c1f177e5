//! The guards of synchronous code.

pub(crate) mod boxed;
pub(crate) mod builder;
pub(crate) mod future;
mod open;

use std::marker::PhantomData;
use std::thread::panicking;

use self::builder::ScopeBuilder;
use crate::log::LogRequest;
use crate::switch::SiteDecision;
pub(crate) use open::{ClosedScope, OpenScope, Probe, ScopeArgs};
use open::{end, end_logged};

/// A scope that is being measured until it is dropped.
///
/// It belongs to the thread that opened it: a parent's time is known only on its own thread. Do not hold
/// it across an `.await`: executors that move tasks between threads refuse it, and others would run
/// other tasks inside it. Measure the future instead ([`MeasureFuture`](crate::MeasureFuture)).
///
/// Made by [`scope!`](crate::scope!).
#[must_use = "a scope ends when its guard is dropped: bind it, as in `let _scope = scope!(\"load\");`"]
pub struct Scope {
    open: Option<OpenScope>,
    not_send: PhantomData<*const ()>,
}

impl Scope {
    /// A scope that is not measured.
    #[inline(always)]
    pub(crate) const fn off() -> Self {
        Self {
            open: None,
            not_send: PhantomData,
        }
    }
}

impl From<Option<OpenScope>> for Scope {
    #[inline(always)]
    fn from(open: Option<OpenScope>) -> Self {
        Self {
            open,
            not_send: PhantomData,
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            end(open);
        }
    }
}

/// A scope that brings its own logger, step, turn or stream.
///
/// Made by [`scope!`](crate::scope!) with arguments; see [`Scope`].
#[must_use = "a scope ends when its guard is dropped: bind it, as in `let _scope = scope!(\"load\");`"]
pub struct ScopeWithArgs<'s> {
    open: Option<OpenScope>,
    /// Whether it is this call's turn to be logged.
    due: bool,
    every: u32,
    request: LogRequest,
    not_send: PhantomData<*const ()>,
    /// Its stream is lent for as long as it is open.
    lender: PhantomData<&'s ()>,
}

impl<'s> ScopeWithArgs<'s> {
    pub(crate) fn open(builder: ScopeBuilder<'s>) -> Self {
        let due = builder.is_due();
        let ScopeBuilder {
            decision,
            every,
            request,
            ask,
            shapes,
            ..
        } = builder;
        // Its turn has been decided on; the opening must not decide again.
        let open = decision.map(SiteDecision::unlogged).and_then(|decision| {
            let fast = if panicking() || ask.is_some() {
                None
            } else {
                OpenScope::fast(decision)
            };
            fast.or_else(|| OpenScope::slow(decision, every, &mut ScopeArgs { ask, shapes }))
        });
        Self {
            open,
            due,
            every,
            request,
            not_send: PhantomData,
            lender: PhantomData,
        }
    }
}

impl Drop for ScopeWithArgs<'_> {
    #[inline]
    fn drop(&mut self) {
        match &self.open {
            Some(open) if self.due => end_logged(open, self.every, &mut self.request),
            Some(open) => end(open),
            None => {}
        }
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope")
            .field("measured", &self.open.is_some())
            .finish()
    }
}

impl std::fmt::Debug for ScopeWithArgs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopeWithArgs")
            .field("measured", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
