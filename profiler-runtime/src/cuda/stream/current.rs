//! The thread's current stream, and that of futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::cuda::ffi::library::{DiscoveryReason, find};
use crate::cuda::stream::{IntoStream, Stream};
use crate::cuda::thread::state::replace_current;
use crate::switch;

/// Runs `f` with a stream as the thread's current one: what is measured inside, and names no stream of its
/// own, is measured on it.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc")] {
/// use profiler_runtime::{cuda::with_stream, scope};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// with_stream(&stream, || {
///     let _scope = scope!("forward");
///     // launch on the stream
/// });
/// # }
/// # #[cfg(feature = "cudarc")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn with_stream<T>(stream: impl IntoStream<'static>, f: impl FnOnce() -> T) -> T {
    let Some(stream) = taken(stream) else {
        return f();
    };
    let _restore = Restore(replace_current(Some(stream)));
    f()
}

/// Makes a stream the thread's current one, until another one is set or the thread ends; the one before.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc")] {
/// use profiler_runtime::cuda::{clear_current_stream, set_current_stream};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// set_current_stream(&stream);
/// // what is measured here is measured on it
/// clear_current_stream();
/// # }
/// # #[cfg(feature = "cudarc")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn set_current_stream(stream: impl IntoStream<'static>) -> Option<Stream> {
    replace_current(Some(taken(stream)?))
}

/// Leaves the thread without a current stream; the one it had.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::clear_current_stream().is_none());
/// ```
pub fn clear_current_stream() -> Option<Stream> {
    replace_current(None)
}

/// The stream, where there is anything to be measured on it. It is held while it is current.
pub(crate) fn taken(stream: impl IntoStream<'static>) -> Option<Stream> {
    if cfg!(feature = "strip") {
        return None;
    }
    let lent = stream.into_stream();
    let raw = lent.raw;
    // While the switch is off it is kept all the same: it may be turned on.
    if !switch::is_off(switch::load()) {
        find(DiscoveryReason::ExplicitRequest);
    }
    Some(lent.held.unwrap_or_else(|| Stream::lent_for_ever(raw)))
}

/// Puts the current stream back, however the code that had another one ends.
#[must_use = "the stream is current until this is dropped"]
pub(crate) struct Restore(Option<Stream>);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ended = replace_current(self.0.take());
    }
}

/// Makes a stream the thread's current one until what is returned is dropped.
pub(crate) fn make_current(stream: &Stream) -> Restore {
    Restore(replace_current(Some(stream.clone())))
}

pin_project! {
    /// A future that runs on a stream: made by [`StreamFuture::with_stream`].
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

/// Runs futures on a stream: `future.with_stream(&stream).await`.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc")] {
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
    /// Makes the stream the current one, as [`with_stream`] does, whenever the future is polled, on whatever
    /// thread.
    fn with_stream(self, stream: impl IntoStream<'static>) -> OnStream<Self> {
        OnStream {
            future: self,
            stream: taken(stream),
        }
    }
}

impl<F: Future> StreamFuture for F {}
