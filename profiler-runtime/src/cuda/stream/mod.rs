//! What GPU time is taken on.

pub(crate) mod current;
pub(crate) mod default;
pub(crate) mod target;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
#[cfg(feature = "cudarc")]
use std::sync::Arc;

use crate::cuda::context;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Failed;
use crate::cuda::ffi::driver::{Driver, RawContext};
use crate::cuda::ffi::library::{DiscoveryReason, find};
use crate::stream_key::RawStream;

/// A stream that GPU time is taken on, kept alive for as long as it is needed.
///
/// Made from a stream or context of cudarc 0.19 by any function that takes an [`IntoStream`], and from the
/// raw handle of any other library by [`from_raw`](Self::from_raw).
#[derive(Clone)]
pub struct Stream {
    pub(crate) raw: StreamHandles,
    /// Dropped when the stream is not needed any more.
    keep: KeepAlive,
}

/// The handles of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamHandles {
    pub(crate) stream: RawStream,
    /// None for the one that is current when a scope begins.
    pub(crate) context: RawContext,
}

/// Who keeps a stream.
#[derive(Clone)]
pub(crate) enum KeepAlive {
    /// The user's word.
    Promise,
    #[cfg(feature = "cudarc")]
    #[allow(dead_code, reason = "held, not read")]
    Stream(Arc<cudarc::driver::CudaStream>),
    #[cfg(feature = "cudarc")]
    #[allow(dead_code, reason = "held, not read")]
    Context(Arc<cudarc::driver::CudaContext>),
}

impl Stream {
    /// A stream by its handles: `CUstream` and `CUcontext` of the driver, `cudaStream_t` of the runtime.
    ///
    /// The handles 0 (or 1) and 2 are the legacy and the per-thread default stream. Without a context
    /// (null) it is the one that the stream belongs to; for a default stream, the one that is current when
    /// a scope begins.
    ///
    /// # Safety
    ///
    /// `stream` must be a stream of the CUDA driver in this process, `context` its context or null, and
    /// both must exist until this `Stream`, its clones and the scopes measured on them are gone.
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
            // SAFETY: the caller says that the stream exists.
            let ask = || unsafe { driver.context_of(stream) };
            context = ask_anywhere(driver, ask).unwrap_or(RawContext::NONE);
        }
        Self {
            raw: StreamHandles { stream, context },
            keep: KeepAlive::Promise,
        }
    }

    /// What keeps it, without its handles.
    #[inline]
    pub(crate) fn into_keep(self) -> KeepAlive {
        self.keep
    }

    /// Whether this one does for `other`: the same handles, kept as well.
    pub(crate) fn stands_for(&self, other: &Self) -> bool {
        let is_promise = |stream: &Self| matches!(stream.keep, KeepAlive::Promise);
        self.raw == other.raw && (!is_promise(self) || is_promise(other))
    }

    /// A stream that somebody else keeps to the end of the process.
    pub(crate) fn lent_for_ever(raw: StreamHandles) -> Self {
        Self {
            raw,
            keep: KeepAlive::Promise,
        }
    }
}

/// Asks what any current context may answer. Where the driver wants one and the thread has none, one that the
/// profiler holds does.
fn ask_anywhere<T>(driver: &Driver, ask: impl Fn() -> Result<T, Failed>) -> Result<T, Failed> {
    let held = context::all().into_iter().find(|context| context.is_held());
    match held {
        Some(context) => driver.retried_in(context.raw, ask),
        None => ask(),
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Promise => "Promise",
            #[cfg(feature = "cudarc")]
            Self::Stream(_) => "Stream",
            #[cfg(feature = "cudarc")]
            Self::Context(_) => "Context",
        })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = !matches!(self.keep, KeepAlive::Promise);
        f.debug_struct("Stream")
            .field("stream", &self.raw.stream.0)
            .field("context", &self.raw.context.0)
            .field("kept", &kept)
            .finish()
    }
}

/// A stream for the length of a scope: held, or lent for `'s`.
#[doc(hidden)]
#[derive(Debug)]
pub struct StreamRef<'s> {
    pub(crate) raw: StreamHandles,
    pub(crate) held: Option<Stream>,
    lender: PhantomData<&'s ()>,
}

impl StreamRef<'_> {
    fn held(stream: Stream) -> Self {
        Self {
            raw: stream.raw,
            held: Some(stream),
            lender: PhantomData,
        }
    }
}

/// What GPU time can be taken on: a [`Stream`], or cudarc's streams and contexts (feature `cudarc`).
///
/// An `Arc`, or a reference to one, is held for as long as it is needed. A reference to the stream itself is
/// borrowed until the scope ends. A context means its default stream.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc")] {
/// use cudarc::driver::CudaContext;
/// use profiler_runtime::scope;
///
/// let context = CudaContext::new(0)?;
/// let stream = context.new_stream()?;
/// let _scope = scope!("forward", stream = &stream);
/// // launch on the stream
/// # }
/// # #[cfg(feature = "cudarc")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "GPU time cannot be taken on `{Self}`",
    label = "not a stream",
    note = "a stream is `&CudaStream` or `Arc<CudaStream>` of cudarc 0.19 (feature `cudarc`), a context of it \
            stands for its default stream; for another version, or another library, use \
            `unsafe {{ profiler_runtime::cuda::Stream::from_raw(stream, context) }}`"
)]
pub trait IntoStream<'s> {
    #[doc(hidden)]
    fn into_stream(self) -> StreamRef<'s>;
}

impl<'s> IntoStream<'s> for Stream {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::held(self)
    }
}

impl<'s> IntoStream<'s> for &Stream {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::held(self.clone())
    }
}

#[cfg(feature = "cudarc")]
mod of_cudarc {
    use std::marker::PhantomData;
    use std::sync::Arc;

    use cudarc::driver::{CudaContext, CudaStream};

    use super::{IntoStream, KeepAlive, Stream, StreamHandles, StreamRef};
    use crate::cuda::ffi::driver::RawContext;
    use crate::stream_key::RawStream;

    fn raw_of(stream: &CudaStream) -> StreamHandles {
        StreamHandles {
            stream: RawStream(stream.cu_stream().cast()).canonical(),
            context: RawContext(stream.context().cu_ctx().cast()),
        }
    }

    fn default_of(context: &CudaContext) -> StreamHandles {
        StreamHandles {
            stream: RawStream::LEGACY,
            context: RawContext(context.cu_ctx().cast()),
        }
    }

    fn lent<'s>(raw: StreamHandles) -> StreamRef<'s> {
        StreamRef {
            raw,
            held: None,
            lender: PhantomData,
        }
    }

    impl From<Arc<CudaStream>> for Stream {
        fn from(stream: Arc<CudaStream>) -> Self {
            Self {
                raw: raw_of(&stream),
                keep: KeepAlive::Stream(stream),
            }
        }
    }

    impl From<Arc<CudaContext>> for Stream {
        fn from(context: Arc<CudaContext>) -> Self {
            Self {
                raw: default_of(&context),
                keep: KeepAlive::Context(context),
            }
        }
    }

    impl<'s> IntoStream<'s> for Arc<CudaStream> {
        fn into_stream(self) -> StreamRef<'s> {
            StreamRef::held(self.into())
        }
    }

    impl<'s> IntoStream<'s> for &Arc<CudaStream> {
        fn into_stream(self) -> StreamRef<'s> {
            Arc::clone(self).into_stream()
        }
    }

    impl<'s> IntoStream<'s> for &'s CudaStream {
        fn into_stream(self) -> StreamRef<'s> {
            lent(raw_of(self))
        }
    }

    impl<'s> IntoStream<'s> for Arc<CudaContext> {
        fn into_stream(self) -> StreamRef<'s> {
            StreamRef::held(self.into())
        }
    }

    impl<'s> IntoStream<'s> for &Arc<CudaContext> {
        fn into_stream(self) -> StreamRef<'s> {
            Arc::clone(self).into_stream()
        }
    }

    impl<'s> IntoStream<'s> for &'s CudaContext {
        fn into_stream(self) -> StreamRef<'s> {
            lent(default_of(self))
        }
    }
}
