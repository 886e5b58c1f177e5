//! Streams: what a user names, and the default stream of the process.

#[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
mod cudarc_0_19;
pub(crate) mod default;
mod leaked_list;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(crate) mod libtorch;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "libtorch_not_built.rs"]
pub(crate) mod libtorch;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
#[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
use std::sync::Arc;

use profiler_cuda_sys::driver::{Driver, Failed, RawContext};

use crate::cuda::context;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library::{DiscoveryReason, find};
use crate::switch;
use profiler_report::internal::RawStream;

/// A stream that GPU time is taken on. It keeps the stream alive while it exists.
///
/// Any function that takes an [`IntoStream`] makes one from a stream or context of cudarc 0.19.
/// [`from_raw`](Self::from_raw) makes one from the raw handle of any other library.
#[derive(Clone)]
pub struct Stream {
    pub(crate) handles: StreamHandles,
    /// Only dropped, never read.
    keep_alive: KeepAlive,
}

/// The driver's handles of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamHandles {
    pub(crate) stream: RawStream,
    /// [`RawContext::NONE`] for the context that is current when a scope begins.
    pub(crate) context: RawContext,
}

/// The owner that keeps a stream alive.
#[derive(Clone)]
pub(crate) enum KeepAlive {
    /// Nothing: the stream is borrowed, or the caller of [`Stream::from_raw`] promised that it exists.
    Promise,
    #[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
    #[allow(dead_code, reason = "dropped, not read")]
    Stream(Arc<cudarc::driver::CudaStream>),
    #[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
    #[allow(dead_code, reason = "dropped, not read")]
    Context(Arc<cudarc::driver::CudaContext>),
}

impl Stream {
    /// Makes a stream from its handles: `CUstream` and `CUcontext` of the driver, or `cudaStream_t` of the runtime.
    ///
    /// The handles 0 (or 1) and 2 are the legacy and the per-thread default stream. With a null `context`, the driver
    /// is asked for the context that the stream belongs to; for a default stream, it is the context that is current
    /// when a scope begins.
    ///
    /// # Safety
    ///
    /// `stream` must be a stream of the CUDA driver in this process, and `context` its context or null. Both must exist
    /// until this `Stream`, its clones and the scopes measured on them are gone.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use profiler_runtime::{cuda::Stream, scope};
    ///
    /// # let handle: *mut std::ffi::c_void = std::ptr::null_mut();
    /// // SAFETY: the stream is destroyed after the scope.
    /// let stream = unsafe { Stream::from_raw(handle, std::ptr::null_mut()) };
    /// let _scope = scope!("forward", stream = &stream);
    /// ```
    #[must_use]
    pub unsafe fn from_raw(stream: *mut c_void, context: *mut c_void) -> Self {
        let stream = RawStream(stream).canonical();
        let mut context = RawContext(context);
        if context == RawContext::NONE
            && !stream.is_default()
            && let Some(driver) = find(DiscoveryReason::ExplicitRequest)
        {
            // SAFETY: the caller promises that the stream exists.
            let read = || unsafe { driver.context_of(stream) };
            context = retried_in_any_context(driver, read).unwrap_or(RawContext::NONE);
        }
        Self::unowned(StreamHandles { stream, context })
    }

    /// Makes a stream that something else keeps alive until the process ends.
    pub(crate) fn unowned(handles: StreamHandles) -> Self {
        Self {
            handles,
            keep_alive: KeepAlive::Promise,
        }
    }

    /// Returns what keeps the stream alive, without its handles.
    #[inline]
    pub(crate) fn into_keep_alive(self) -> KeepAlive {
        self.keep_alive
    }

    /// Returns `true` if this stream can replace `other`: it has the same handles, and keeps the stream alive if
    /// `other` does.
    pub(crate) fn can_replace(&self, other: &Self) -> bool {
        let is_promise = |stream: &Self| matches!(stream.keep_alive, KeepAlive::Promise);
        self.handles == other.handles && (!is_promise(self) || is_promise(other))
    }
}

/// Calls `call`. If the driver answers that the thread needs a current context, repeats the call in a context that the
/// profiler retains, if there is one.
fn retried_in_any_context<T>(
    driver: &Driver,
    call: impl Fn() -> Result<T, Failed>,
) -> Result<T, Failed> {
    let retained = context::all()
        .into_iter()
        .find(|context| context.is_retained());
    match retained {
        Some(context) => driver.retried_in(context.raw, call),
        None => call(),
    }
}

/// Converts a stream that is to become current or the default; `None` if the crate is built without measurements.
pub(super) fn owned(stream: impl IntoStream<'static>) -> Option<Stream> {
    if switch::NEVER_MEASURES {
        return None;
    }
    let stream = stream.into_stream().stream;
    // A stream is a reason to load the driver, but not while measuring is off. The stream is kept even then, since
    // measuring may be turned on.
    if !switch::is_off(switch::load()) {
        find(DiscoveryReason::ExplicitRequest);
    }
    Some(stream)
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Promise => "Promise",
            #[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
            Self::Stream(_) => "Stream",
            #[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
            Self::Context(_) => "Context",
        })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = !matches!(self.keep_alive, KeepAlive::Promise);
        f.debug_struct("Stream")
            .field("stream", &self.handles.stream.0)
            .field("context", &self.handles.context.0)
            .field("kept", &kept)
            .finish()
    }
}

/// A stream as the argument of a call: owned, or borrowed for `'s`.
#[doc(hidden)]
#[derive(Debug)]
pub struct StreamRef<'s> {
    pub(crate) stream: Stream,
    borrow: PhantomData<&'s ()>,
}

impl StreamRef<'_> {
    #[inline]
    fn owned(stream: Stream) -> Self {
        Self {
            stream,
            borrow: PhantomData,
        }
    }
}

/// Anything that names a stream to measure on: a [`Stream`], or a stream or context of cudarc 0.19 (feature
/// `cudarc-0_19`).
///
/// An `Arc`, or a reference to one, is cloned and kept as long as it is needed. A reference to the stream itself is
/// borrowed until the scope ends. A context stands for its default stream.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use cudarc::driver::CudaContext;
/// use profiler_runtime::scope;
///
/// let context = CudaContext::new(0)?;
/// let stream = context.new_stream()?;
/// let _scope = scope!("forward", stream = &stream);
/// // launch on the stream
/// # }
/// # #[cfg(feature = "cudarc-0_19")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "GPU time cannot be taken on `{Self}`",
    label = "not a stream",
    note = "a stream is `&CudaStream` or `Arc<CudaStream>` of cudarc 0.19 (feature `cudarc-0_19`), a context of it \
            stands for its default stream; for another version, or another library, use \
            `unsafe {{ profiler_runtime::cuda::Stream::from_raw(stream, context) }}`"
)]
pub trait IntoStream<'s> {
    #[doc(hidden)]
    fn into_stream(self) -> StreamRef<'s>;
}

impl<'s> IntoStream<'s> for Stream {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::owned(self)
    }
}

impl<'s> IntoStream<'s> for &Stream {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::owned(self.clone())
    }
}
