//! How a CUDA stream is identified.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

/// A stream, which may be one of the three special values: 0, 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct RawStream(pub(crate) *mut c_void);

// SAFETY: a driver handle is a name for an object of the driver, which accepts it from any thread. Nothing here
// dereferences it.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// `CU_STREAM_LEGACY`; the null handle means the same stream.
    pub(crate) const LEGACY: Self = Self(ptr::null_mut());
    /// `CU_STREAM_PER_THREAD`.
    pub(crate) const PER_THREAD: Self = Self(ptr::without_provenance_mut(2));

    /// Returns whether the handle means a default stream of the current context.
    pub(crate) fn is_default(self) -> bool {
        self == Self::LEGACY || self.is_per_thread()
    }

    /// Returns whether the handle means a different stream on each thread.
    pub(crate) fn is_per_thread(self) -> bool {
        self == Self::PER_THREAD
    }

    /// Returns one handle for a stream that has two.
    pub(crate) fn canonical(self) -> Self {
        if self.0.addr() == 1 {
            Self::LEGACY
        } else {
            self
        }
    }
}

/// The unit of order on a device: work with equal keys runs in the order of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) context: u32,
    /// The thread, if the handle means a different stream on each; otherwise zero.
    pub(crate) thread: u32,
    pub(crate) stream: RawStream,
}

/// A stream on which GPU time was measured.
///
/// It displays as in the summary: `default`, `per-thread default of thread 3`, or the handle in hexadecimal digits,
/// followed by its context if that is not the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub(crate) StreamKey);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StreamKey {
    /// The key of scopes whose stream is unknown.
    pub(crate) const NOWHERE: Self = Self {
        context: u32::MAX,
        stream: RawStream::LEGACY,
        thread: 0,
    };
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stream == RawStream::LEGACY {
            f.write_str("default")?;
        } else if self.stream.is_per_thread() {
            write!(f, "per-thread default of thread {}", self.thread)?;
        } else {
            write!(f, "{:p}", self.stream.0)?;
        }
        match self.context {
            0 => Ok(()),
            other => write!(f, " of context {other}"),
        }
    }
}
