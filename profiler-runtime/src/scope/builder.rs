//! The beginning of a call that needs more than statistics: its logger and its step.

use std::marker::PhantomData;

use super::ScopeWithArgs;
use super::future::{FutureScope, FutureScopeWithArgs};
use crate::cuda::{self, DiscoveryReason, ExplicitStream, GpuOptions, IntoStream, Mode};
use crate::diagnostics;
use crate::diagnostics::user_code;
use crate::local::{self, NoCell};
use crate::log::{IntoLogger, LogOutcome, LogRequest};
use crate::name;
use crate::session::{self, Shapes, ToShape};
use crate::step::IntoStep;
use crate::switch::SiteDecision;
use crate::sync::ReentrancyGuard;

/// A call that has been decided on and not yet begun: the macros hand it what the arguments give,
/// then turn it into a guard or a future. `'s` is for how long its stream is lent.
#[derive(Debug)]
pub struct ScopeBuilder<'s> {
    /// None for a call that is not measured.
    pub(crate) decision: Option<SiteDecision>,
    pub(crate) every: u32,
    /// Whether it is this call's turn to be logged; known once somebody asked.
    turn: Option<bool>,
    pub(crate) request: LogRequest,
    /// What it asks of the GPU, where it asks for anything.
    pub(crate) ask: Option<GpuOptions>,
    /// The extents of what the call was given, where a session wants them.
    pub(crate) shapes: Shapes,
    lender: PhantomData<&'s ()>,
}

impl<'s> ScopeBuilder<'s> {
    /// A call that is not measured.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            decision: None,
            every: 1,
            turn: None,
            request: LogRequest {
                logger: None,
                step: None,
            },
            ask: None,
            shapes: None,
            lender: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn new(decision: Option<SiteDecision>, every: u32) -> Self {
        Self {
            decision,
            every,
            ..Self::off()
        }
    }

    /// Logs one call in `every`, for names built at run time; zero counts as one.
    #[must_use]
    pub fn every(mut self, every: u32) -> Self {
        self.every = every.max(1);
        self
    }

    /// Whether the call's own logger is wanted: it is measured, and its turn has come.
    #[inline]
    pub fn wants_log(&mut self) -> bool {
        self.decision.is_some_and(|decision| self.sample(decision))
    }

    /// Whether a step is wanted: as [`wants_log`](Self::wants_log), and somebody takes it.
    #[inline]
    pub fn wants_step(&mut self) -> bool {
        self.resolve_sampling();
        self.is_due()
    }

    /// Whether the call's own stream is wanted: it is measured, and there is a driver.
    #[inline]
    pub fn wants_stream(&mut self) -> bool {
        self.decision.is_some() && cuda::find(DiscoveryReason::ExplicitRequest).is_some()
    }

    /// The stream that the GPU time of this call is taken on.
    #[inline]
    pub fn stream(&mut self, stream: impl IntoStream<'s>) {
        let given = ExplicitStream::from(stream.into_stream());
        self.ask.get_or_insert_default().stream = Some(given);
    }

    /// Has the end of the scope wait for the device.
    #[inline]
    pub fn synchronous(&mut self) {
        self.ask.get_or_insert_default().mode = Mode::Synchronous;
    }

    /// Has the events become part of the graph that is being captured.
    #[inline]
    pub fn captured(&mut self) {
        self.ask.get_or_insert_default().mode = Mode::Captured;
    }

    /// Whether the shapes of what the call was given are wanted: it is measured, and an active window records
    /// them.
    #[inline]
    pub fn wants_shapes(&mut self) -> bool {
        self.decision.is_some() && session::wants_shapes()
    }

    /// The shape of one more of the things that the call was given.
    #[inline]
    pub fn shape(&mut self, shape: &(impl ToShape + ?Sized)) {
        // What is kept for the window is not the memory of the scope around.
        let _busy = ReentrancyGuard::try_enter();
        // It is code of the program's, which must not end the call where it only asks for a shape.
        let shape = user_code::call(|| shape.to_shape());
        let known = shape.unwrap_or_else(no_shape);
        self.shapes.get_or_insert_default().push(known);
    }

    /// The logger of this call.
    #[inline]
    pub fn log<Marker>(&mut self, logger: impl IntoLogger<Marker>) {
        self.request.logger = Some(logger.into_logger());
    }

    /// The logger of this call, written as a closure.
    #[inline]
    pub fn log_with<F, R>(&mut self, logger: F)
    where
        F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
        R: LogOutcome,
    {
        self.request.logger = Some(logger.into_logger());
    }

    /// The step of this call.
    #[inline]
    pub fn step(&mut self, step: impl IntoStep) {
        self.request.step = Some(step.into_step());
    }

    /// Opens the scope; the clock is read last.
    #[inline]
    pub fn start(mut self) -> ScopeWithArgs<'s> {
        self.resolve_sampling();
        ScopeWithArgs::open(self)
    }

    /// Whether the call is to be logged, after all that was asked and request.
    pub(crate) fn is_due(&self) -> bool {
        self.turn == Some(true)
    }

    /// A default logger wants one call in so many too, though nobody asked before.
    #[inline]
    fn resolve_sampling(&mut self) {
        if let Some(decision) = self.decision.filter(|decision| decision.is_logged()) {
            self.sample(decision);
        }
    }

    /// Asks once for each call, since asking counts.
    #[inline]
    fn sample(&mut self, decision: SiteDecision) -> bool {
        *self
            .turn
            .get_or_insert_with(|| is_due(decision, self.every))
    }
}

impl ScopeBuilder<'static> {
    /// The scope of a future, which begins when it is first polled.
    #[inline]
    pub fn task(mut self) -> FutureScopeWithArgs {
        self.resolve_sampling();
        FutureScopeWithArgs::new(self)
    }

    /// The scope of a future that brings nothing along.
    #[inline]
    pub(crate) fn plain_future(mut self) -> FutureScope {
        self.resolve_sampling();
        FutureScope::new(&self)
    }
}

/// Whether it is the turn of this call, of `every`.
///
/// Each thread counts for itself; a thread that ends leaves its turn to the next, and one that comes to
/// others waits a whole turn.
#[inline]
pub(crate) fn is_due(decision: SiteDecision, every: u32) -> bool {
    if every == 1 {
        return true;
    }
    let cell = match local::cell(decision.id()) {
        Ok(cell) => cell,
        Err(reason) => return reason == NoCell::Unavailable,
    };
    // One more than is left, so that zero says that the thread has not asked before.
    let left = match cell.until_logged.get().checked_sub(1) {
        Some(left) => left,
        None => name::by_id(decision.id()).map_or(0, |name| name.initial_skips(every)),
    };
    cell.every.set(every.into());
    let next = left.checked_sub(1).unwrap_or(u64::from(every) - 1);
    cell.until_logged.set(next + 1);
    left == 0
}

/// The shape of something whose own `to_shape` has panicked.
#[cold]
fn no_shape() -> Box<[usize]> {
    diagnostics::warn_once("a `to_shape` panicked: the argument is shown with an empty shape");
    Box::default()
}
