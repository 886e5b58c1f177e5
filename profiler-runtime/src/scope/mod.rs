//! Scopes: what opens and closes around measured code.
//!
//! A call site makes a [`ScopeBuilder`](builder::ScopeBuilder), or a guard directly if the call has no arguments. The
//! guards of synchronous code are here; `open` and `close` hold the two paths that they take, `future` the scopes of
//! futures.

pub(crate) mod boxed;
pub(crate) mod builder;
mod close;
pub(crate) mod future;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
mod give_up;
pub(crate) mod handle;
mod open;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
mod part;
mod probe;

use std::marker::PhantomData;
use std::thread::panicking;

use crate::log::LogRequest;
use crate::switch::SiteDecision;
pub(crate) use builder::ScopeArgs;
use builder::ScopeBuilder;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use builder::should_log;
use close::end_logged;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use close::end_part;
use handle::Entered;
pub(crate) use open::OpenScope;
#[cfg(any(test, all(feature = "tracing-layer", not(feature = "strip"))))]
pub(crate) use open::end;
use open::end_in_caller;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use part::Part;
pub(crate) use probe::{calibrate, run_empty_scopes};

/// A scope that is measured until the guard is dropped.
///
/// It belongs to the thread that opened it, since only that thread knows its enclosing scope. Do not hold it across an
/// `.await`: executors that move tasks between threads reject it, because the guard is not `Send`, and others would run
/// other tasks inside it. Measure the future instead ([`MeasureFuture`](crate::MeasureFuture)).
///
/// Created by [`measure!`](crate::measure!).
#[must_use = "the section ends when its guard is dropped; to measure the rest of the block, write \
              `let _guard = measure!(\"name\");`, and not `let _ = …`, which drops the guard at once"]
pub struct Scope {
    open: Option<OpenScope>,
    not_send: PhantomData<*const ()>,
}

impl Scope {
    /// Returns a scope that is not measured.
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
            end_in_caller::<true>(open);
        }
    }
}

/// A scope with arguments: a logger, a step, a sampling rate, a stream, shapes or a parent.
///
/// Created by [`measure!`](crate::measure!) with arguments; see [`Scope`].
#[must_use = "the section ends when its guard is dropped; to measure the rest of the block, write \
              `let _guard = measure!(\"name\");`, and not `let _ = …`, which drops the guard at once"]
pub struct ScopeWithArgs<'s> {
    open: Option<OpenScope>,
    /// `None` if the call is not logged.
    log: Option<LogRequest>,
    /// The argument `parent`. Fields are dropped after `drop` has closed the scope.
    _parent: Entered,
    not_send: PhantomData<*const ()>,
    /// The stream is borrowed while the scope is open.
    borrowed_stream: PhantomData<&'s ()>,
}

impl<'s> ScopeWithArgs<'s> {
    /// Returns a scope that is not measured.
    #[inline]
    pub(crate) const fn off() -> Self {
        Self {
            open: None,
            log: None,
            _parent: Entered::none(),
            not_send: PhantomData,
            borrowed_stream: PhantomData,
        }
    }

    pub(crate) fn open(mut builder: ScopeBuilder<'s>) -> Self {
        let step = builder.request.step;
        let log = builder.take_request();
        let parent = builder.args.parent.enter();
        // The builder has decided whether the call is logged; opening the scope must not count the call again.
        let decision = builder.decision.map(SiteDecision::without_logging);
        let open = decision.and_then(|decision| {
            let fast = if panicking() || builder.args.gpu.is_some() {
                None
            } else {
                OpenScope::fast(decision)
            };
            fast.or_else(|| {
                OpenScope::slow(decision, builder.request.every, step, &mut builder.args)
            })
        });
        Self {
            open,
            log,
            _parent: parent,
            not_send: PhantomData,
            borrowed_stream: PhantomData,
        }
    }
}

impl Drop for ScopeWithArgs<'_> {
    #[inline]
    fn drop(&mut self) {
        match &self.open {
            Some(open) if self.log.is_some() => end_logged(open, &mut self.log),
            Some(open) => end_in_caller::<true>(open),
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

#[cfg(test)]
mod tests;
