//! Measured futures: [`Measured`] owns the future and its scope, [`InPlace`] borrows them.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use profiler_log::{IntoLogger, IntoStep};

use super::poll::PollGuard;
use super::{FutureScopeWithArgs, FutureState, InPlaceScope};
use crate::cuda::{self, IntoStream, Stream};
use crate::scope::builder::ScopeBuilder;
use crate::scope::handle::Handle;
use crate::session::ToShape;

pin_project! {
    /// A measured future, created by the attribute on asynchronous functions and by
    /// [`MeasureFuture`](crate::MeasureFuture).
    ///
    /// It is measured from its first poll to its end. A future that is dropped before it completes is counted and
    /// flagged. One that is never polled is not counted.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited or polled"]
    pub struct Measured<F> {
        #[pin]
        future: F,
        scope: FutureScopeWithArgs,
        // The stream that was current where the future was created. It is current in all polls.
        inherited: Option<Stream>,
    }
}

/// Measures a future.
pub fn measure<F: Future>(scope: FutureScopeWithArgs, future: F) -> Measured<F> {
    Measured {
        future,
        scope,
        inherited: None,
    }
}

/// Measures a future, and makes `stream` current in its polls.
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
        // Before the scope opens: the GPU time may be measured on this stream.
        let _current = this.inherited.as_ref().map(cuda::make_current);
        let mut guard = PollGuard::new(this.scope.parts());
        guard.enter();
        let result = this.future.poll(context);
        guard.is_last = result.is_ready();
        result
    }
}

/// A measured future that borrows the future and the scope from its caller, created by the attribute on asynchronous
/// functions.
///
/// Neither is moved, so that each level of nested `async` functions takes little stack.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited or polled"]
pub struct InPlace<'a, F> {
    state: &'a mut FutureState,
    builder: Option<&'a mut ScopeBuilder<'static>>,
    future: Pin<&'a mut F>,
}

/// Measures a pinned future in place. The caller drops the scope after the future.
#[inline]
pub fn measure_in_place<'a, F: Future>(
    scope: &'a mut impl InPlaceScope,
    future: Pin<&'a mut F>,
) -> InPlace<'a, F> {
    let (state, builder) = scope.parts();
    InPlace {
        state,
        builder,
        future,
    }
}

// The caller owns the future and the scope. As for an owner of both, unwind safety depends on the future alone.
impl<F: UnwindSafe> UnwindSafe for InPlace<'_, F> {}
impl<F: RefUnwindSafe> RefUnwindSafe for InPlace<'_, F> {}

impl<F: Future> Future for InPlace<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let mut guard = PollGuard::new((this.state, this.builder.as_deref_mut()));
        guard.enter();
        let result = this.future.as_mut().poll(context);
        guard.is_last = result.is_ready();
        result
    }
}

/// Arguments, to be given before the first poll.
impl<F> Measured<F> {
    /// Logs the future's time, as the attribute's argument `log` does.
    ///
    /// Has no effect after the first poll.
    pub fn log<Marker>(mut self, logger: impl IntoLogger<Marker>) -> Self {
        if let Some(builder) = self.scope.builder_before_first_poll()
            && builder.wants_log()
        {
            builder.log(logger);
        }
        self
    }

    /// Sets the step under which the time is logged, as the attribute's argument `global_step` does.
    ///
    /// Has no effect after the first poll.
    pub fn global_step(mut self, step: impl IntoStep) -> Self {
        if let Some(builder) = self.scope.builder_before_first_poll() {
            builder.step(step);
        }
        self
    }

    /// Sets the stream on which the GPU time is measured, as the attribute's argument `stream` does: from an event at
    /// the first poll to one at the end.
    ///
    /// Has no effect after the first poll.
    pub fn stream(mut self, stream: impl IntoStream<'static>) -> Self {
        if let Some(builder) = self.scope.builder_before_first_poll()
            && builder.wants_stream()
        {
            builder.stream(stream);
        }
        self
    }

    /// Makes another thread's scope the parent, as the attribute's argument `parent` does.
    ///
    /// Has no effect after the first poll.
    pub fn parent(mut self, parent: &Handle) -> Self {
        if let Some(builder) = self.scope.builder_before_first_poll()
            && builder.wants_parent()
        {
            builder.parent(parent);
        }
        self
    }

    /// Adds the shape of something that the future works on, as the attribute's argument `shapes` does. It is read if an
    /// active window records shapes.
    ///
    /// Has no effect after the first poll.
    pub fn shape(mut self, shape: &(impl ToShape + ?Sized)) -> Self {
        if let Some(builder) = self.scope.builder_before_first_poll()
            && builder.wants_shapes()
        {
            builder.shape(shape);
        }
        self
    }
}
