//! Scopes of futures: one for each task, whatever threads poll it.

mod poll;

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::ClosedScope;
use crate::clock::{elapsed, now};
use crate::collect;
use crate::cuda::{self, Begun, IntoStream, Stream, TaskGpuScope};
use crate::diagnostics::catch_own_panic;
use crate::local::{self, NoCell};
use crate::log::IntoLogger;
use crate::log::LogRequest;
use crate::name;
use crate::scope::builder::ScopeBuilder;
use crate::session::{self, EndedScope, FutureRecord, RecordEnding, ToShape};
use crate::stats::{Ending, StatCell};
use crate::step::IntoStep;
use crate::switch::SiteDecision;
use poll::PollGuard;

/// The scope of a future: from its first poll to its end, and the time spent polling.
///
/// While the future is polled the scope is the innermost one of the polling thread, so that what runs
/// inside becomes its child; between polls it is no scope of any thread, so that two futures taking
/// calls_since_logged on one thread never become each other's parent.
#[derive(Debug)]
pub struct FutureScopeWithArgs {
    state: FutureState,
    builder: ScopeBuilder<'static>,
}

/// The scope of a future that brings nothing along but its name: what most have, without the room for the rest.
#[derive(Debug)]
pub struct FutureScope(FutureState);

/// What every scope of a future has.
#[derive(Debug)]
pub struct FutureState {
    /// None for a future that is not measured, or has ended.
    decision: Option<SiteDecision>,
    /// Whether the default loggers get it, where there is no builder that says so.
    is_due: bool,
    running: Option<Running>,
}

/// A scope that can stand beside its future.
pub trait Scoped {
    /// Returns its parts: the builder where the call brings something along.
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>);
}

impl Scoped for FutureScopeWithArgs {
    #[inline]
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>) {
        (&mut self.state, Some(&mut self.builder))
    }
}

impl Scoped for FutureScope {
    #[inline]
    fn parts(&mut self) -> (&mut FutureState, Option<&mut ScopeBuilder<'static>>) {
        (&mut self.0, None)
    }
}

// As for `FutureScopeWithArgs` below.
impl UnwindSafe for FutureScope {}
impl RefUnwindSafe for FutureScope {}

#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
struct Running {
    first_poll: u64,
    polled: i64,
    children: i64,
    /// Whether no scope of the same name was open around the first poll.
    outermost: bool,
    /// Whether a panic was under way at the first poll.
    panicking: bool,
    /// When the last poll ended.
    last_end: u64,
    /// Whether a panic went through a poll, which was the last one then.
    panicked: bool,
    /// Its GPU's side, or why it had none at its first poll.
    cuda: Result<TaskGpuScope, Begun>,
    /// What a session is to be told of it, where one recorded at the first poll.
    record: Option<Box<FutureRecord>>,
}

impl FutureScope {
    pub(crate) fn new(builder: &ScopeBuilder<'static>) -> Self {
        Self(FutureState::new(builder))
    }
}

impl FutureState {
    fn new(builder: &ScopeBuilder<'static>) -> Self {
        Self {
            decision: builder.decision,
            is_due: builder.is_due(),
            running: None,
        }
    }

    fn finish(&mut self, builder: Option<&mut ScopeBuilder<'static>>, ending: Ending) {
        // Taken, so that a future is counted once however often it is dropped or polled.
        let (Some(decision), Some(running)) = (self.decision.take(), self.running.take()) else {
            return;
        };
        // The executor may catch a panic, and drop the future much later.
        let ending = if running.panicked {
            Ending::Panicked
        } else {
            ending
        };
        let end = if ending == Ending::Dropped {
            now()
        } else {
            running.last_end
        };
        let elapsed = elapsed(running.first_poll, end);
        let count = |cell: &StatCell| {
            let own = running.polled - running.children;
            let full = cell.count(elapsed, own, running.outermost);
            cell.count_future(running.polled);
            cell.count_ending(ending);
            full
        };
        let cell = match local::cell(decision.id()) {
            Ok(cell) => Some(cell),
            Err(NoCell::Unavailable) => None,
            // Inside the profiler nothing is measured.
            Err(NoCell::Reentrant) => {
                let opened = running.cuda.ok().and_then(TaskGpuScope::into_opened);
                return opened.map_or((), cuda::abandon);
            }
        };
        match cell {
            Some(cell) if !count(cell) => {}
            _ => count_in_name(decision.id(), cell, count),
        }
        let log = match builder {
            Some(builder) => builder
                .is_due()
                .then(|| (builder.every, std::mem::take(&mut builder.request))),
            None => self.is_due.then(|| (1, LogRequest::default())),
        };
        let closed = ClosedScope::new(end, elapsed, running.outermost);
        let span = closed.span();
        if let Some(record) = running.record {
            let ended = EndedScope {
                name: decision.id(),
                serial: 0,
                parent: 0,
                start: running.first_poll,
                elapsed,
                ending: match ending {
                    Ending::Returned => RecordEnding::Returned,
                    Ending::Panicked => RecordEnding::Panicked,
                    Ending::Dropped => RecordEnding::Dropped,
                },
                cuda: running.cuda.as_ref().map_or(0, TaskGpuScope::key),
            };
            session::close_future(record, &ended, running.polled);
        }
        let no_stream = match &running.cuda {
            Err(Begun::NoStream) => true,
            // The program may have loaded CUDA since; that alone says nothing of what this was to be measured on.
            Err(Begun::NotAsked) => cuda::has_no_stream(),
            _ => false,
        };
        if no_stream {
            cuda::count_without_stream(cell, elapsed);
        }
        match (running.cuda.ok().and_then(TaskGpuScope::into_opened), log) {
            (Some(opened), log) => {
                cuda::finish_scope(cell, log, |part| cuda::end_task(opened, span, part))
            }
            (None, Some(log)) if !no_stream && cuda::context_became_current() => {
                let finish = |part| cuda::end_without_context(decision.id(), span, part);
                cuda::finish_scope(cell, Some(log), finish);
            }
            (None, Some((every, request))) => {
                collect::log(cell, decision.id(), every, (end, elapsed), request);
            }
            (None, None) => {}
        }
        if decision.is_step() && running.outermost {
            session::environment::step();
        }
    }

    fn drop_unfinished(&mut self, builder: Option<&mut ScopeBuilder<'static>>) {
        if self.running.is_some() {
            catch_own_panic("a future was dropped", || {
                self.finish(builder, Ending::Dropped);
            });
        }
    }
}

impl FutureScopeWithArgs {
    pub(crate) fn new(builder: ScopeBuilder<'static>) -> Self {
        Self {
            state: FutureState::new(&builder),
            builder,
        }
    }

    /// Returns `true` if the future is measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.builder.decision.is_some()
    }

    pub(crate) fn request(&mut self) -> Option<&mut LogRequest> {
        self.pending().map(|builder| &mut builder.request)
    }

    /// What may still be changed: nothing once it runs.
    fn pending(&mut self) -> Option<&mut ScopeBuilder<'static>> {
        let is_pending = self.state.decision.is_some() && self.state.running.is_none();
        is_pending.then_some(&mut self.builder)
    }
}

/// A panic leaves nothing half done in it: it is taken out before it is counted, and each poll closes what
/// it opened. So the future it is put around decides.
impl UnwindSafe for FutureScopeWithArgs {}
impl RefUnwindSafe for FutureScopeWithArgs {}

/// A cell whose buckets are full, or a thread that has no cells any more.
#[cold]
fn count_in_name(id: u32, cell: Option<&StatCell>, count: impl FnOnce(&StatCell) -> bool) {
    let Some(name) = name::by_id(id) else { return };
    match cell {
        Some(cell) => name.carry(cell),
        None => name.count_directly(|cell| _ = count(cell)),
    }
}

impl Drop for FutureScopeWithArgs {
    fn drop(&mut self) {
        let (state, builder) = self.parts();
        state.drop_unfinished(builder);
    }
}

impl Drop for FutureScope {
    fn drop(&mut self) {
        self.0.drop_unfinished(None);
    }
}

pin_project! {
    /// A future that is measured: made by the attribute on asynchronous functions, and by
    /// [`MeasureFuture`].
    ///
    /// It is measured from its first poll to its end; a future that is dropped before is counted and
    /// flagged, one that was never polled is not counted.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited or polled"]
    pub struct Measured<F> {
        #[pin]
        future: F,
        scope: FutureScopeWithArgs,
        // The stream that was current where the future was made, and is so wherever it is polled.
        inherited: Option<Stream>,
    }
}

/// Measures a future with a scope of its own.
pub fn measure<F: Future>(scope: FutureScopeWithArgs, future: F) -> Measured<F> {
    Measured {
        future,
        scope,
        inherited: None,
    }
}

/// Measures a future with a scope of its own; `stream` is current wherever the future is polled.
pub(crate) fn measure_on<F: Future>(
    stream: Option<Stream>,
    scope: FutureScopeWithArgs,
    future: F,
) -> Measured<F> {
    Measured {
        inherited: stream,
        ..measure(scope, future)
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Around the scope: its GPU time may be taken on that stream.
        let _current = this.inherited.as_ref().map(cuda::make_current);
        let mut frame = PollGuard::enter(this.scope.parts());
        let result = this.future.poll(context);
        frame.is_last = result.is_ready();
        result
    }
}

/// A future that is measured where it stands, with a scope that stands beside it: made by the attribute on
/// asynchronous functions.
///
/// Both are the caller's, so that neither is moved: a level of `async` functions takes as little stack as can be.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited or polled"]
pub struct InPlace<'a, F> {
    state: &'a mut FutureState,
    builder: Option<&'a mut ScopeBuilder<'static>>,
    future: Pin<&'a mut F>,
}

/// Measures a pinned future with a scope of its own, which is to be dropped after the future.
#[inline]
pub fn measure_in_place<'a, F: Future>(
    scope: &'a mut impl Scoped,
    future: Pin<&'a mut F>,
) -> InPlace<'a, F> {
    let (state, builder) = scope.parts();
    InPlace {
        state,
        builder,
        future,
    }
}

// The function that owns both is what is caught: references to them stand for them.
impl<F: UnwindSafe> UnwindSafe for InPlace<'_, F> {}
impl<F: RefUnwindSafe> RefUnwindSafe for InPlace<'_, F> {}

impl<F: Future> Future for InPlace<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let mut frame = PollGuard::enter((this.state, this.builder.as_deref_mut()));
        let result = this.future.as_mut().poll(context);
        frame.is_last = result.is_ready();
        result
    }
}

impl<F> Measured<F> {
    /// Logs the future's time, as the attribute's argument of that name.
    ///
    /// To be given before the first poll.
    pub fn log<Marker>(mut self, logger: impl IntoLogger<Marker>) -> Self {
        if self.scope.builder.wants_log()
            && let Some(request) = self.scope.request()
        {
            request.logger = Some(logger.into_logger());
        }
        self
    }

    /// The step under which the time is logged, as the attribute's argument of that name.
    ///
    /// To be given before the first poll.
    pub fn global_step(mut self, step: impl IntoStep) -> Self {
        if let Some(request) = self.scope.request() {
            request.step = Some(step.into_step());
        }
        self
    }

    /// The stream that the GPU time is taken on, as the attribute's argument of that name: from an event at
    /// the first poll to one at the end.
    ///
    /// To be given before the first poll.
    pub fn stream(mut self, stream: impl IntoStream<'static>) -> Self {
        if let Some(builder) = self.scope.pending()
            && builder.wants_stream()
        {
            builder.stream(stream);
        }
        self
    }

    /// The shape of one more of the things that the future works on, as those of the attribute's argument `shapes`:
    /// looked at in an active window that records shapes, and nowhere else.
    ///
    /// To be given before the first poll.
    pub fn shape(mut self, shape: &(impl ToShape + ?Sized)) -> Self {
        if let Some(builder) = self.scope.pending()
            && builder.wants_shapes()
        {
            builder.shape(shape);
        }
        self
    }
}
