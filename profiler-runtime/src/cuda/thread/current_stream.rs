//! The current stream of a thread and of a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::state;
use crate::cuda::stream::{IntoStream, Stream, owned};

/// Runs `f` with `stream` as the thread's current stream. Scopes inside that name no stream are measured on it.
///
/// The stream before is current again when `f` returns or panics.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use profiler_runtime::{cuda::with_stream, scope};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// with_stream(&stream, || {
///     let _scope = scope!("forward");
///     // launch on the stream
/// });
/// # }
/// # #[cfg(feature = "cudarc-0_19")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn with_stream<T>(stream: impl IntoStream<'static>, f: impl FnOnce() -> T) -> T {
    let Some(stream) = owned(stream) else {
        return f();
    };
    let _restore = Restore(replace_current(Some(stream)));
    f()
}

/// Returns this thread's current stream, if one was set. Scopes that name no stream are measured on it.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::current_stream().is_none());
/// ```
#[must_use]
pub fn current_stream() -> Option<Stream> {
    state::with(|thread| thread.current().cloned()).flatten()
}

/// Makes a stream the thread's current stream, until another one is set or the thread ends. Returns the stream before.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use profiler_runtime::cuda::{clear_current_stream, set_current_stream};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// set_current_stream(&stream);
/// // scopes that name no stream are measured on it
/// clear_current_stream();
/// # }
/// # #[cfg(feature = "cudarc-0_19")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn set_current_stream(stream: impl IntoStream<'static>) -> Option<Stream> {
    replace_current(Some(owned(stream)?))
}

/// Leaves the thread without a current stream. Returns the stream before.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::clear_current_stream().is_none());
/// ```
pub fn clear_current_stream() -> Option<Stream> {
    replace_current(None)
}

/// Replaces this thread's current stream, and returns the one before.
fn replace_current(stream: Option<Stream>) -> Option<Stream> {
    state::with(|thread| thread.replace_current(stream)).flatten()
}

/// Restores the thread's current stream when it is dropped.
#[must_use = "dropping this restores the stream before"]
pub(crate) struct Restore(Option<Stream>);

impl Drop for Restore {
    fn drop(&mut self) {
        let _replaced = replace_current(self.0.take());
    }
}

/// Makes a stream the thread's current stream until the returned guard is dropped.
pub(crate) fn make_current(stream: &Stream) -> Restore {
    Restore(replace_current(Some(stream.clone())))
}

pin_project! {
    /// A future that is polled with a current stream: made by [`StreamFuture::with_stream`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited or polled"]
    pub struct OnStream<F> {
        #[pin]
        future: F,
        stream: Option<Stream>,
    }
}

impl<F: Future> Future for OnStream<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _current = this.stream.as_ref().map(make_current);
        this.future.poll(context)
    }
}

/// Sets the current stream of a future: `future.with_stream(&stream).await`.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use profiler_runtime::{cuda::StreamFuture, measure_execution_time};
///
/// #[measure_execution_time]
/// async fn forward() { /* launch on the stream, await its end */ }
///
/// # async fn run() -> Result<(), cudarc::driver::DriverError> {
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// forward().with_stream(&stream).await;
/// # Ok(())
/// # }
/// # }
/// ```
pub trait StreamFuture: Future + Sized {
    /// Makes the stream the current one, as [`with_stream`] does, during each poll of the future, on any thread.
    fn with_stream(self, stream: impl IntoStream<'static>) -> OnStream<Self> {
        OnStream {
            future: self,
            stream: owned(stream),
        }
    }
}

impl<F: Future> StreamFuture for F {}
