//! A call before its scope opens: the arguments that the macros collect.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::diagnostics;
use profiler_host::diagnostics::user_code;
use profiler_host::sync::ReentrancyGuard;
use profiler_log::{CalledOnAnotherThread, IntoLogger, IntoStep, LogOutcome, LoggerInPlace};

use super::ScopeWithArgs;
use super::handle::{AsHandle, Handle};
use super::open::ScopeArgs;
use crate::cuda::{self, DiscoveryReason, IntoStream, Mode};
use crate::local::{self, NoCell};
use crate::log_record::LogRequest;
use crate::name;
use crate::session::{self, ToShape};
use crate::switch::SiteDecision;

/// A call whose site has decided, and whose scope is not open yet.
///
/// The macros ask which arguments are wanted, evaluate those, and then turn the builder into a guard or into the scope
/// of a future. `'s` is the lifetime of the stream, which the guard borrows.
#[derive(Debug)]
pub struct ScopeBuilder<'s> {
    /// `None` if the call is not measured.
    pub(crate) decision: Option<SiteDecision>,
    /// `Some(true)` if the call is logged, `None` if nothing has asked yet.
    is_logged: Option<bool>,
    /// Dropped, as `args`, if there is a decision: a call that is not measured has no arguments, and an open scope has
    /// taken them.
    pub(crate) request: ManuallyDrop<LogRequest>,
    pub(crate) args: ManuallyDrop<ScopeArgs>,
    borrowed_stream: PhantomData<&'s ()>,
}

impl<'s> ScopeBuilder<'s> {
    /// Returns a call that is not measured.
    #[must_use]
    pub const fn off() -> Self {
        Self::new(None, 1)
    }

    #[inline(always)]
    pub(crate) const fn new(decision: Option<SiteDecision>, every: u32) -> Self {
        Self {
            decision,
            is_logged: None,
            request: ManuallyDrop::new(LogRequest::new(every)),
            args: ManuallyDrop::new(ScopeArgs {
                gpu: None,
                shapes: None,
                parent: Handle::none(),
            }),
            borrowed_stream: PhantomData,
        }
    }

    /// Logs one call in `every`, for names built at run time. Zero counts as one.
    #[must_use]
    pub fn every(mut self, every: u32) -> Self {
        self.request.every = every.max(1);
        self
    }

    /// Returns `true` if the call's parent is wanted: the call is measured.
    #[inline]
    pub fn wants_parent(&self) -> bool {
        self.decision.is_some()
    }

    /// Sets the parent.
    #[inline]
    pub fn parent(&mut self, parent: &(impl AsHandle + ?Sized)) {
        self.args.parent = parent.as_handle().clone();
    }

    /// Returns `true` if the call's own logger is wanted: the call is measured and logged.
    #[inline]
    pub fn wants_log(&mut self) -> bool {
        self.decision.is_some_and(|decision| self.sample(decision))
    }

    /// Returns `true` if the call's step is wanted: the call is measured, and logged by its own logger or a default one,
    /// or a range in an NVTX tool.
    #[inline]
    pub fn wants_step(&mut self) -> bool {
        self.resolve_sampling();
        self.is_logged() || self.decision.is_some_and(SiteDecision::has_ranges)
    }

    /// Returns `true` if the call's stream is wanted: the call is measured, and there is a CUDA driver, which this loads if it
    /// is not loaded.
    #[inline]
    pub fn wants_stream(&mut self) -> bool {
        self.decision.is_some() && cuda::find(DiscoveryReason::ExplicitRequest).is_some()
    }

    /// Sets the stream on which the GPU time is measured.
    #[inline]
    pub fn stream(&mut self, stream: impl IntoStream<'s>) {
        let stream = stream.into_stream().stream;
        self.args.gpu.get_or_insert_default().stream = Some(stream);
    }

    /// Makes the end of the scope wait for the device.
    #[inline]
    pub fn synchronous(&mut self) {
        self.args.gpu.get_or_insert_default().mode = Mode::Synchronous;
    }

    /// Makes the scope's events part of the CUDA graph that is being captured.
    #[inline]
    pub fn cuda_graph(&mut self) {
        self.args.gpu.get_or_insert_default().mode = Mode::Captured;
    }

    /// Returns `true` if the call's shapes are wanted: the call is measured, and an active window records shapes.
    #[inline]
    pub fn wants_shapes(&mut self) -> bool {
        self.decision.is_some() && session::wants_shapes()
    }

    /// Adds the shape of an argument.
    #[inline]
    pub fn shape(&mut self, shape: &(impl ToShape + ?Sized)) {
        // Do not count the memory of the shape as the enclosing scope's.
        let _reentrancy = ReentrancyGuard::try_enter();
        // User code: a panic in it must not end the call.
        let shape = user_code::call(|| shape.to_shape());
        let shape = shape.unwrap_or_else(empty_shape);
        self.args.shapes.get_or_insert_default().push(shape);
    }

    /// Sets the logger.
    #[inline]
    pub fn log<Marker>(&mut self, logger: impl IntoLogger<Marker>) {
        self.request.logger = Some(logger.into_logger());
    }

    /// Sets the logger that a place holds, without moving it out of the place.
    #[inline]
    pub fn log_in_place<Marker>(&mut self, logger: &impl LoggerInPlace<Marker>) {
        self.log(logger.to_logger());
    }

    /// Sets the logger, given as a closure. The bounds let the compiler infer the types of the closure's parameters.
    #[inline]
    pub fn log_with<F, R>(&mut self, logger: F)
    where
        F: Fn(&str, f64, u64) -> R + CalledOnAnotherThread<R> + 'static,
        R: LogOutcome,
    {
        self.log(logger);
    }

    /// Sets the step.
    #[inline]
    pub fn step(&mut self, step: impl IntoStep) {
        if step.is_out_of_range() {
            warn_of_step(self.decision);
        }
        self.request.step = Some(step.into_step());
    }

    /// Opens the scope, and takes the arguments. Reads the clock last.
    // Takes a reference: other functions have known the builder's address, so the compiler would copy it to pass it by value.
    #[inline]
    pub fn start(&mut self) -> ScopeWithArgs<'s> {
        if self.decision.is_none() {
            return ScopeWithArgs::off();
        }
        ScopeWithArgs::open::<true>(self)
    }

    /// Returns the decision if the call has no arguments but a logger and a step, and it is known whether it is logged.
    #[inline(always)]
    pub(super) fn decision_alone(&self) -> Option<SiteDecision> {
        let decision = self.decision.filter(|_| self.args.is_empty())?;
        if decision.is_logged() && self.is_logged.is_none() {
            return None;
        }
        Some(decision.without_logging())
    }

    /// Takes the decision out, without whether default loggers log the call, and whether it is logged. From then on, the
    /// builder drops no arguments.
    pub(super) fn take_decision(&mut self) -> Option<(SiteDecision, bool)> {
        self.resolve_sampling();
        let decision = self.decision.take()?;
        Some((decision.without_logging(), self.is_logged()))
    }

    /// Drops the arguments.
    ///
    /// # Safety
    ///
    /// Nothing uses or drops them again.
    #[cold]
    #[inline(never)]
    unsafe fn drop_args(&mut self) {
        // SAFETY: as the caller promises.
        let (request, args) = unsafe {
            (
                ManuallyDrop::take(&mut self.request),
                ManuallyDrop::take(&mut self.args),
            )
        };
        user_code::drop_value(request);
        user_code::drop_value(args);
    }

    /// Returns `true` if the call is logged, as far as it has been asked.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged == Some(true)
    }

    /// Returns `true` if the call has no argument for its GPU time and no parent, and is not logged, as far as it has been
    /// asked.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.args.gpu.is_none() && self.args.parent.is_none() && !self.is_logged()
    }

    /// Takes the log request out if the call is logged.
    pub(super) fn take_request(&mut self) -> Option<LogRequest> {
        let every = self.request.every;
        let take = || std::mem::replace(&mut *self.request, LogRequest::new(every));
        (self.is_logged == Some(true)).then(take)
    }

    /// Decides whether the call is logged, if a default logger wants that and nothing has asked before.
    #[inline]
    pub(super) fn resolve_sampling(&mut self) {
        if let Some(decision) = self.decision.filter(|decision| decision.is_logged()) {
            self.sample(decision);
        }
    }

    /// Decides whether the call is logged. Decides once for each call, because deciding counts the call.
    #[inline]
    fn sample(&mut self, decision: SiteDecision) -> bool {
        let every = self.request.every;
        *self
            .is_logged
            .get_or_insert_with(|| should_log(decision, every))
    }
}

impl Drop for ScopeBuilder<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.decision.is_some() {
            // SAFETY: the builder is not used again, and fields of this type are not dropped by themselves. With a decision,
            // nothing has taken them out.
            unsafe { self.drop_args() };
        }
    }
}

/// Counts a call of a name and returns `true` if it is one of those that are logged: one in `every`.
///
/// Each thread counts its own calls. See [`Sampling`](name::Sampling) for threads that begin and end.
#[inline]
pub(crate) fn should_log(decision: SiteDecision, every: u32) -> bool {
    if every == 1 {
        return true;
    }
    let cell = match local::cell(decision.id()) {
        Ok(cell) => cell,
        Err(reason) => return reason == NoCell::Unavailable,
    };
    // One more than the calls to skip, so that the initial zero means that the thread has not asked yet.
    let skips = match cell.until_logged.get().checked_sub(1) {
        Some(skips) => skips,
        None => initial_skips(decision, every),
    };
    cell.every.set(every.into());
    let next_skips = skips.checked_sub(1).unwrap_or(u64::from(every) - 1);
    cell.until_logged.set(next_skips + 1);
    local::give_back(cell);
    skips == 0
}

#[cold]
fn initial_skips(decision: SiteDecision, every: u32) -> u64 {
    if ReentrancyGuard::is_entered() {
        // The thread may hold the lock that finds the name. This call is not logged, and the next one is.
        return 1;
    }
    name::by_id(decision.id()).map_or(0, |name| name.sampling.initial_skips(every))
}

/// Warns of a `to_shape` that panicked, and returns a shape to use instead.
#[cold]
fn empty_shape() -> Box<[usize]> {
    diagnostics::warn_once("a `to_shape` panicked: the argument is shown with an empty shape");
    Box::default()
}

/// Warns, once, of a step that is negative or beyond 64 bits.
#[cold]
fn warn_of_step(decision: Option<SiteDecision>) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if ReentrancyGuard::is_entered() || WARNED.swap(true, Relaxed) {
        return;
    }
    let name = decision.and_then(|decision| name::by_id(decision.id()));
    diagnostics::warn_once(&format!(
        "`{}` gave a `global_step` that is negative or beyond 64 bits, which counts as the nearest step: steps start at 0, \
         so shift them if they begin below",
        name.map_or("?", |name| &name.text)
    ));
}
