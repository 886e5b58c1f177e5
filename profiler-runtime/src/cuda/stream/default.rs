//! The stream of scopes for which neither the call nor its thread names one.
//!
//! There is none unless the program or its user asks for one. The driver's own default stream is not taken
//! unasked: the legacy one waits for every blocking stream of its context, and they wait for it, so that an event
//! in it serialises streams that are independent. To record into it while another thread captures one of them
//! invalidates that capture, and to ask beforehand does not help: the capture may begin between the question and
//! the record.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU8, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};

use super::current::taken;
use crate::config::ImplicitStream;
use crate::cuda::stream::{IntoStream, Stream};
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

/// A stream that was made the default one at least once. Never freed, so that a reference to one may be read from
/// [`DEFAULT`] without a lock or a count, and used by a scope that is still open when another one is set.
struct Kept {
    stream: Stream,
    next: *const Kept,
}

/// The default stream; null for none.
static DEFAULT: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());

/// All streams that were ever made the default one: a stack to which nodes are only added.
static KEPT: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());

/// What `PROFILER_CUDA_STREAM` says, as an [`ImplicitStream`].
static IMPLICIT: AtomicU8 = AtomicU8::new(ImplicitStream::None as u8);

/// Streams are handed from the thread that sets them to all others.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Stream>();
};

/// Makes a stream the default one of the process, on which all is measured that names no stream, on every thread
/// that has no current one, whatever context is current there. Returns the default stream before.
///
/// It is for programs that put most of their work into one stream. Where threads have streams of their own, or
/// there are several devices, [`set_current_stream`](super::set_current_stream) says it for each thread.
///
/// The stream is held until the process ends, even when another one has been set or none: a scope may still be
/// open on it on any thread. To set the same stream again holds nothing more.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc")] {
/// use profiler_runtime::{cuda::set_default_stream, scope};
///
/// let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
/// set_default_stream(&stream);
/// std::thread::spawn(|| {
///     let _scope = scope!("forward"); // measured on the stream
/// });
/// # }
/// # #[cfg(feature = "cudarc")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn set_default_stream(stream: impl IntoStream<'static>) -> Option<Stream> {
    let stream = taken(stream)?;
    // What is allocated here is the profiler's own.
    let _busy = ReentrancyGuard::try_enter();
    replace(keep(stream))
}

/// Leaves the process without a default stream: what names no stream has no GPU time from now on. Scopes that are
/// open end on the stream on which they began. Returns the default stream before.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::clear_default_stream().is_none());
/// ```
pub fn clear_default_stream() -> Option<Stream> {
    replace(ptr::null())
}

/// The default stream of the process, if one was set.
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

/// The default stream of the process: one load.
#[inline]
pub(crate) fn get() -> Option<&'static Stream> {
    // `Acquire` pairs with the exchange in `replace`: who sees the address sees the node.
    let node = DEFAULT.load(Acquire);
    // SAFETY: null, or a node that `keep` leaked, which is never changed again.
    unsafe { node.as_ref() }.map(|node| &node.stream)
}

fn replace(node: *const Kept) -> Option<Stream> {
    let before = DEFAULT.swap(node.cast_mut(), AcqRel);
    // SAFETY: as in `get`.
    unsafe { before.as_ref() }.map(|node| node.stream.clone())
}

/// The node of a stream, made if there is none yet: a program that sets the same few streams again and again keeps
/// these few.
fn keep(stream: Stream) -> *const Kept {
    let mut first = KEPT.load(Acquire);
    let mut node: *const Kept = first;
    // SAFETY: null, or a node that was leaked below.
    while let Some(kept) = unsafe { node.as_ref() } {
        if kept.stream.stands_for(&stream) {
            return node;
        }
        node = kept.next;
    }
    let new = Box::into_raw(Box::new(Kept {
        stream,
        next: first,
    }));
    // Two threads that set the same stream at once add two nodes, which is harmless.
    while let Err(other) = KEPT.compare_exchange_weak(first, new, AcqRel, Acquire) {
        first = other;
        // SAFETY: not published yet, so that this thread alone has it.
        unsafe { (*new).next = first };
    }
    new
}

/// Takes over the setting, before the driver is known to any measured thread.
pub(crate) fn set_implicit(stream: ImplicitStream) {
    IMPLICIT.store(stream as u8, Relaxed);
}

/// The default stream of the driver's, where the settings ask for it.
#[inline]
pub(crate) fn implicit() -> Option<RawStream> {
    const LEGACY: u8 = ImplicitStream::Legacy as u8;
    const PER_THREAD: u8 = ImplicitStream::PerThread as u8;
    match IMPLICIT.load(Relaxed) {
        LEGACY => Some(RawStream::LEGACY),
        PER_THREAD => Some(RawStream::PER_THREAD),
        _ => None,
    }
}
