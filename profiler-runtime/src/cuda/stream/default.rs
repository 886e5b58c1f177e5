//! The default stream of the process, on which scopes are measured for which neither the call nor its thread names a
//! stream.
//!
//! There is none unless the program or its user asks for one. The profiler does not choose a default stream of the
//! driver by itself. The legacy default stream waits for every blocking stream of its context, and they wait for it, so
//! that an event in it serialises independent streams. Recording into it while another thread captures one of them
//! invalidates the capture, and no query can prevent that: the capture may begin between the query and the record.
//!
//! A measured thread reads the default stream with one load. Any thread may have a scope open on it when another one is
//! set, so it is never freed: see [`LeakedList`].

use profiler_host::sync::ReentrancyGuard;

use super::leaked_list::LeakedList;
use super::{IntoStream, Stream, owned};

/// The default stream, and those that have been.
static DEFAULT: LeakedList<Stream> = LeakedList::new();

/// Makes a stream the default stream of the process. Returns the default stream before.
///
/// Every scope is measured on it that names no stream and whose thread has no current stream, whatever context is
/// current there.
///
/// This is for programs that launch most of their work in one stream. Where threads have streams of their own, or
/// there are several devices, use [`set_current_stream`](crate::cuda::set_current_stream) on each thread.
///
/// The stream is kept alive until the process ends, even when another one has been set or none: a scope may still be
/// open on it on any thread. Setting the same stream again keeps nothing more.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use profiler_runtime::{cuda::set_default_stream, scope};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// set_default_stream(&stream);
/// std::thread::spawn(|| {
///     let _scope = scope!("forward"); // measured on the stream
/// });
/// # }
/// # #[cfg(feature = "cudarc-0_19")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn set_default_stream(stream: impl IntoStream<'static>) -> Option<Stream> {
    let stream = owned(stream)?;
    // A measured allocator must not attribute the profiler's allocations to the program.
    let _guard = ReentrancyGuard::try_enter();
    DEFAULT.select(stream, Stream::can_replace).cloned()
}

/// Leaves the process without a default stream. Returns the default stream before.
///
/// Scopes that name no stream have no GPU time from now on. Open scopes end on the stream on which they began.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::clear_default_stream().is_none());
/// ```
pub fn clear_default_stream() -> Option<Stream> {
    DEFAULT.deselect().cloned()
}

/// Returns the default stream of the process, if one is set.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::default_stream().is_none());
/// ```
#[must_use]
pub fn default_stream() -> Option<Stream> {
    get().cloned()
}

/// Returns the default stream of the process: one load.
#[inline]
pub(crate) fn get() -> Option<&'static Stream> {
    DEFAULT.selected()
}
