//! Scopes: what opens and closes around measured code.
//!
//! A call site makes a [`ScopeBuilder`](builder::ScopeBuilder), or a guard directly if the call has no arguments. The
//! guards of synchronous code are here; `future` has the scopes of futures.
//!
//! # The three paths
//!
//! A path that cannot do its work passes the call on to the path below it. A call is *plain* if it has no argument, *on a
//! stream* if a stream is its only argument, and *logged* if it has other ones: mostly a logger or a step.
//!
//! | path | | plain | logged | on a stream |
//! |---|---|---|---|---|
//! | fast, `fast.rs` | opens | `OpenScope::fast_at` | | |
//! | | closes | `end_in_caller` | | |
//! | direct, `direct.rs` | opens | `OpenScope::direct_on_cpu`, `direct_on_gpu` | `direct_on_cpu`, `with_more` | `direct_with` |
//! | | closes | `end_direct` | `end_logged` | `end_direct` |
//! | slow, `slow.rs` | opens | `OpenScope::slow` | `slow` | `slow` |
//! | | closes | `end_slowly` | `end_logged_slowly` | `end_slowly` |
//!
//! All scopes but logged ones begin to close with `end_in_caller`. A call whose own logger skips it this time closes as a plain
//! one.

pub(crate) mod boxed;
pub(crate) mod builder;
mod direct;
mod fast;
pub(crate) mod future;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
mod give_up;
pub(crate) mod handle;
pub(crate) mod on_stream;
mod open;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
mod part;
mod probe;
mod serial;
mod slow;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::thread::panicking;

use profiler_host::diagnostics::user_code;

use crate::cuda::{GpuOptions, Stream};
use crate::log_record::LogRequest;
use crate::switch::SiteDecision;
use builder::ScopeBuilder;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use builder::should_log;
use direct::end_logged;
#[cfg(any(test, all(feature = "tracing-layer", not(feature = "strip"))))]
pub(crate) use fast::end;
use fast::end_in_caller;
use handle::Entered;
pub(crate) use open::OpenScope;
#[cfg(not(test))]
use open::ScopeArgs;
#[cfg(test)]
pub(crate) use open::ScopeArgs;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use part::Part;
pub(crate) use probe::{calibrate, run_empty_scopes};
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use slow::end_part;

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
    /// `None` if the call is not logged. The end of the scope takes it.
    log: Option<ManuallyDrop<LogRequest>>,
    /// The argument `parent`, dropped after the scope has closed.
    parent: ManuallyDrop<Entered>,
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
            parent: ManuallyDrop::new(Entered::none()),
            not_send: PhantomData,
            borrowed_stream: PhantomData,
        }
    }

    /// Opens the scope of a call, and takes the arguments out of its builder. All else than a logger and a step is done out of
    /// line.
    // Generic, so that it is compiled into the calling crate, where the address of thread-local storage is a constant.
    #[inline(never)]
    pub(crate) fn open<const IS_GENERIC: bool>(builder: &mut ScopeBuilder<'s>) -> Self {
        // Check `panicking()` first: it makes a call if another thread panics, and only two pointers are live across it.
        if panicking() {
            return Self::open_with_more(builder);
        }
        let alone = builder.decision_alone();
        let on_cpu = alone.filter(|decision| !decision.is_cuda());
        let Some(open) = on_cpu.and_then(OpenScope::direct_on_cpu) else {
            return Self::open_with_more(builder);
        };
        let is_logged = builder.is_logged();
        builder.decision = None;
        // SAFETY: without a decision, the builder does not drop its request, and nothing uses it. There is no other argument.
        let request = unsafe { ManuallyDrop::take(&mut builder.request) };
        if is_logged {
            Self::new(Some(open), Some(request), Entered::none())
        } else {
            drop_request(request);
            Self::new(Some(open), None, Entered::none())
        }
    }

    #[inline(never)]
    fn open_with_more(builder: &mut ScopeBuilder<'s>) -> Self {
        let Some((decision, is_logged)) = builder.take_decision() else {
            return Self::off();
        };
        let step = builder.request.step;
        let parent = builder.args.parent.enter();
        let open = OpenScope::with_more(decision, step, &mut builder.args);
        // SAFETY: without a decision, the builder does not drop its arguments itself, and nothing uses them.
        let request = unsafe {
            ManuallyDrop::drop(&mut builder.args);
            ManuallyDrop::take(&mut builder.request)
        };
        let log = if is_logged {
            Some(request)
        } else {
            drop_request(request);
            None
        };
        Self::new(open, log, parent)
    }

    /// Opens the scope of a call that has a stream and no other argument.
    // Generic, so that it is compiled into the calling crate, where the address of thread-local storage is a constant.
    #[inline(never)]
    fn on_stream<const IS_GENERIC: bool>(decision: SiteDecision, mut options: GpuOptions) -> Self {
        let direct = if panicking() {
            None
        } else {
            OpenScope::direct_with(decision, &mut options)
        };
        let Some(open) = direct else {
            return Self::on_stream_slowly(decision, options);
        };
        if let Some(unused) = options.stream.take() {
            drop_stream(unused);
        }
        Self::new(Some(open), None, Entered::none())
    }

    #[cold]
    #[inline(never)]
    fn on_stream_slowly(decision: SiteDecision, options: GpuOptions) -> Self {
        let mut args = ScopeArgs {
            gpu: Some(options),
            ..ScopeArgs::default()
        };
        Self::new(
            OpenScope::slow(decision, None, &mut args),
            None,
            Entered::none(),
        )
    }

    /// Opens the scope of a call without arguments.
    #[inline(never)]
    fn without_args(decision: SiteDecision) -> Self {
        Self::new(OpenScope::without_args(decision), None, Entered::none())
    }

    #[inline(always)]
    fn new(open: Option<OpenScope>, log: Option<LogRequest>, parent: Entered) -> Self {
        Self {
            open,
            log: log.map(ManuallyDrop::new),
            parent: ManuallyDrop::new(parent),
            not_send: PhantomData,
            borrowed_stream: PhantomData,
        }
    }
}

impl Drop for ScopeWithArgs<'_> {
    #[inline]
    fn drop(&mut self) {
        // Both are tail calls, so that this saves no register.
        if self.log.is_some() || !self.parent.is_none() {
            // SAFETY: the guard is not used again.
            unsafe { self.end_with_more::<true>() };
        } else if let Some(open) = &self.open {
            end_in_caller::<true>(open);
        }
    }
}

impl ScopeWithArgs<'_> {
    /// Ends a scope that is logged or has a parent.
    ///
    /// # Safety
    ///
    /// The guard is not used again.
    // Generic, so that it is compiled into the calling crate, where the address of thread-local storage is a constant.
    #[inline(never)]
    unsafe fn end_with_more<const IS_GENERIC: bool>(&mut self) {
        // SAFETY: it is not dropped with the guard, and not used again, as the caller promises.
        let _parent = unsafe { ManuallyDrop::take(&mut self.parent) };
        match (&self.open, &mut self.log) {
            // SAFETY: as above, for the request.
            (Some(open), Some(log)) => unsafe { end_logged::<IS_GENERIC>(open, log) },
            (Some(open), None) => end_in_caller::<IS_GENERIC>(open),
            // SAFETY: as above.
            (None, Some(log)) => drop_request(unsafe { ManuallyDrop::take(log) }),
            (None, None) => {}
        }
    }
}

/// Drops a request that is not used. Only a logger needs that.
#[inline(always)]
fn drop_request(request: LogRequest) {
    if request.logger.is_some() {
        drop_logger(request);
    }
}

/// Drops the stream of a scope that has no GPU time.
#[cold]
#[inline(never)]
#[allow(
    clippy::drop_non_drop,
    reason = "without CUDA, a stream has no destructor"
)]
fn drop_stream(stream: Stream) {
    drop(stream);
}

#[cold]
#[inline(never)]
fn drop_logger(request: LogRequest) {
    user_code::drop_value(request);
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
