//! The default stream of the process, on which scopes are measured for which neither the call nor its thread names a
//! stream.
//!
//! There is none unless the program or its user asks for one. The profiler does not choose a default stream of the
//! driver by itself. The legacy default stream waits for every blocking stream of its context, and they wait for it, so
//! that an event in it serialises independent streams. Recording into it while another thread captures one of them
//! invalidates the capture, and no query can prevent that: the capture may begin between the query and the record.
//!
//! # Why the default stream is never freed
//!
//! A measured thread reads [`DEFAULT`] with one load, and uses the node without a lock or a reference count. A scope may
//! stay open on the stream while another thread sets a different one. So nodes are leaked, and linked in [`NODES`] so that
//! setting the same stream again finds its node:
//!
//! - A node is written before it is published, and never changed afterwards. Both statics are stored with `Release` (as
//!   part of `AcqRel`) and loaded with `Acquire`, so a thread that sees a node's address sees its contents.
//! - `NODES` is a stack that only grows, so the exchange in [`node_for`] cannot suffer from ABA: an address that has
//!   been its head never becomes its head again.
//! - Two threads that set the same new stream at once may add a node each. Both nodes are valid; one of them is not
//!   found again, which costs its memory.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU8, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};

use super::current::owned;
use super::{IntoStream, Stream};
use crate::config::ImplicitStream;
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

/// A stream that has been the default stream. Never freed.
struct Node {
    stream: Stream,
    next: *const Node,
}

/// The default stream; null for none.
static DEFAULT: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// The newest of all nodes.
static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// `PROFILER_CUDA_STREAM`, as an [`ImplicitStream`].
static IMPLICIT: AtomicU8 = AtomicU8::new(ImplicitStream::None as u8);

/// A node is shared between threads through a pointer, which the compiler does not check.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Stream>();
};

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
    let stream = owned(stream)?;
    // The node is an allocation of the profiler, which a measured allocator must not attribute to the program.
    let _guard = ReentrancyGuard::try_enter();
    replace(node_for(stream))
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
    replace(ptr::null())
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
    let node = DEFAULT.load(Acquire);
    // SAFETY: null, or a leaked node, which was published with `Release` and is never changed.
    unsafe { node.as_ref() }.map(|node| &node.stream)
}

fn replace(node: *const Node) -> Option<Stream> {
    let before = DEFAULT.swap(node.cast_mut(), AcqRel);
    // SAFETY: as in `get`.
    unsafe { before.as_ref() }.map(|node| node.stream.clone())
}

/// Returns the node of a stream, and adds one if there is none.
fn node_for(stream: Stream) -> *const Node {
    let mut first = NODES.load(Acquire);
    let mut node: *const Node = first;
    // SAFETY: null, or a node that was leaked below.
    while let Some(known) = unsafe { node.as_ref() } {
        if known.stream.can_replace(&stream) {
            return node;
        }
        node = known.next;
    }
    let new = Box::into_raw(Box::new(Node {
        stream,
        next: first,
    }));
    while let Err(other) = NODES.compare_exchange_weak(first, new, AcqRel, Acquire) {
        first = other;
        // SAFETY: not published yet, so no other thread can access it.
        unsafe { (*new).next = first };
    }
    new
}

/// Stores `PROFILER_CUDA_STREAM`, before the driver is published to measured threads.
pub(crate) fn set_implicit(stream: ImplicitStream) {
    IMPLICIT.store(stream as u8, Relaxed);
}

/// Returns the default stream of the driver that `PROFILER_CUDA_STREAM` asks for.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::ffi::driver::RawContext;
    use crate::cuda::stream::StreamHandles;

    fn stream(handle: usize) -> Stream {
        Stream::unowned(StreamHandles {
            stream: RawStream(ptr::without_provenance_mut(handle)),
            context: RawContext::NONE,
        })
    }

    #[test]
    fn a_stream_that_is_set_again_has_one_node() {
        let [one, other] = [0x101, 0x102].map(stream);
        let node = node_for(one.clone());
        assert_ne!(node, node_for(other));
        assert_eq!(node, node_for(one));
    }

    #[test]
    fn nodes_that_threads_add_at_once_are_all_linked() {
        let handles = 0x200..0x208;
        std::thread::scope(|scope| {
            for handle in handles.clone() {
                scope.spawn(move || _ = node_for(stream(handle)));
            }
        });
        for handle in handles {
            let node = node_for(stream(handle));
            assert_eq!(node, node_for(stream(handle)));
            // SAFETY: nodes are leaked.
            let known = unsafe { &*node };
            assert_eq!(known.stream.handles.stream.0.addr(), handle);
        }
    }
}
