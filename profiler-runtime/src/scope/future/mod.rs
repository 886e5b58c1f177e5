//! Scopes of futures: one for each future, whichever threads poll it.
//!
//! A future is measured from its first poll to its end. Time spent in polls is counted as well. While the future is
//! polled, a [`PollGuard`](poll::PollGuard) makes it the innermost scope of the polling thread, so that what runs inside
//! becomes its child. Between polls it is no scope of any thread: two futures that are polled in turn on one thread never
//! become each other's parent.
//!
//! A future passes through these states:
//!
//! 1. *Not polled*: `progress` is `None`. If it is dropped, nothing is counted.
//! 2. *In progress*: `progress` is `Some` after the first poll.
//! 3. *Finished*: it returned, panicked or was dropped. `decision` and `progress` are taken, so that it is counted once,
//!    also if it is polled again. An ordinary future that is ready at once goes here from the first state.

mod finish;
mod measured;
mod poll;

use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use profiler_host::diagnostics::catch_own_panic;

use super::builder::ScopeBuilder;
use crate::cuda::nvtx::FutureRange;
use crate::cuda::{Begun, TaskGpuScope};
use crate::local::SharedScope;
use crate::local::callers::FutureCall;
use crate::session::FutureRecord;
use crate::stats::Ending;
use crate::switch::SiteDecision;
pub(crate) use measured::measure_on;
pub use measured::{InPlace, Measured, measure, measure_in_place};
pub use poll::{OnlyPoll, only_poll};

/// The scope of a future with arguments.
#[derive(Debug)]
pub struct FutureScopeWithArgs {
    state: FutureState,
    builder: ScopeBuilder<'static>,
}

/// The scope of a future without arguments, which is smaller. Most futures have none.
#[derive(Debug)]
pub struct FutureScope(ManuallyDrop<FutureState>);

/// The state of the scope of a future.
#[derive(Debug)]
pub struct FutureState {
    /// `None` if the future is not measured, or has finished.
    decision: Option<SiteDecision>,
    /// `true` if a default logger logs a future without arguments.
    is_logged: bool,
    /// `None` until the first poll.
    progress: Option<Progress>,
}

/// The state of a future that has been polled. Times are in ticks.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts that are independent of each other"
)]
struct Progress {
    first_poll: u64,
    /// The sum of the polls.
    polled: i64,
    /// The sum of the children of all polls.
    children: i64,
    /// `true` if no other scope of the name was open around the first poll.
    outermost: bool,
    /// `true` if the thread was panicking at the first poll.
    unwinding: bool,
    /// The end of the last poll.
    last_end: u64,
    /// `true` if a poll panicked. It was the last one.
    panicked: bool,
    /// The GPU side, or why the future had none at its first poll.
    cuda: Result<TaskGpuScope, Begun>,
    range: FutureRange,
    /// `None` if no session recorded at the first poll.
    record: Option<Box<FutureRecord>>,
    /// The part that the future shares with other threads, if it has a handle. During a poll it is among the thread's links.
    shared: Option<Arc<SharedScope>>,
    /// The caller, if callers are counted.
    call: Option<FutureCall>,
}

impl Progress {
    /// Returns the state of a future without a GPU side, a range, a record, a handle and a caller.
    fn new(first_poll: u64, outermost: bool) -> Self {
        Self {
            first_poll,
            polled: 0,
            children: 0,
            outermost,
            unwinding: false,
            last_end: first_poll,
            panicked: false,
            cuda: Err(Begun::NoDriver),
            range: FutureRange::NONE,
            record: None,
            shared: None,
            call: None,
        }
    }

    /// Returns `true` if a poll has no more to do than to count its time.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.cuda.is_err() && self.shared.is_none() && self.call.is_none()
    }
}

/// The scope of a future that is measured in place.
pub trait InPlaceScope {
    /// Returns the state, and the builder of a scope with arguments.
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>);
}

impl InPlaceScope for FutureScopeWithArgs {
    #[inline]
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>) {
        (&mut self.state, Some(&mut self.builder))
    }
}

impl InPlaceScope for FutureScope {
    #[inline]
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>) {
        (&mut self.0, None)
    }
}

impl FutureState {
    fn new(decision: Option<SiteDecision>, is_logged: bool) -> Self {
        Self {
            decision,
            is_logged,
            progress: None,
        }
    }

    #[cold]
    #[inline(never)]
    fn finish_unfinished(&mut self, builder: Option<&mut ScopeBuilder<'static>>) {
        catch_own_panic("a future was dropped", || {
            self.finish(builder, Ending::Dropped);
        });
    }

    // A future that was ready has no progress: its drop should be no call.
    #[inline(always)]
    fn finish_dropped(&mut self, builder: Option<&mut ScopeBuilder<'static>>) {
        if self.progress.is_some() {
            self.finish_unfinished(builder);
        }
    }
}

impl FutureScope {
    /// Returns the scope of a future that does what the site has decided. Each call is logged if a default logger wants it.
    #[inline]
    pub(crate) fn new(decision: Option<SiteDecision>) -> Self {
        let is_logged = decision.is_some_and(SiteDecision::is_logged);
        Self(ManuallyDrop::new(FutureState::new(decision, is_logged)))
    }
}

impl FutureScopeWithArgs {
    pub(crate) fn new(builder: ScopeBuilder<'static>) -> Self {
        Self {
            state: FutureState::new(builder.decision, builder.is_logged()),
            builder,
        }
    }

    /// Returns `true` if the future is measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.builder.decision.is_some()
    }

    /// Returns the builder while the arguments can still be changed: until the first poll of a measured future.
    fn builder_before_first_poll(&mut self) -> Option<&mut ScopeBuilder<'static>> {
        let is_unpolled = self.state.decision.is_some() && self.state.progress.is_none();
        is_unpolled.then_some(&mut self.builder)
    }
}

impl ScopeBuilder<'static> {
    /// Returns the scope of a future. It opens when the future is first polled.
    #[inline]
    pub fn task(mut self) -> FutureScopeWithArgs {
        self.resolve_sampling();
        FutureScopeWithArgs::new(self)
    }
}

impl Drop for FutureScopeWithArgs {
    fn drop(&mut self) {
        let (state, builder) = self.parts();
        state.finish_dropped(builder);
    }
}

impl Drop for FutureScope {
    // Nothing is left to drop then: `finish` takes what an unfinished future holds.
    #[inline]
    fn drop(&mut self) {
        self.0.finish_dropped(None);
    }
}

// A panic leaves no broken invariant: `finish` takes the state before it counts it, and each poll closes what it opened.
// A measured future is unwind safe if the future is.
impl UnwindSafe for FutureScope {}
impl RefUnwindSafe for FutureScope {}
impl UnwindSafe for FutureScopeWithArgs {}
impl RefUnwindSafe for FutureScopeWithArgs {}

#[cfg(test)]
mod tests;
