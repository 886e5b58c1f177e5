//! How a CUDA stream is identified.

use std::fmt;

pub use profiler_cuda_sys::driver::RawStream;

/// The unit of order on a device: work with equal keys runs in the order of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// The number of its context.
    pub context: u32,
    /// The thread, if the handle means a different stream on each; otherwise zero.
    pub thread: u32,
    /// The handle of the driver.
    pub stream: RawStream,
}

/// A stream on which GPU time was measured.
///
/// It displays as in the summary: `default`, `per-thread default of thread 3`, or the handle in hexadecimal digits,
/// followed by its context if that is not the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(#[doc(hidden)] pub StreamKey);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StreamKey {
    /// The key of scopes whose stream is unknown.
    pub const NOWHERE: Self = Self {
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

/// The text of the stream, as in the rows of a summary.
#[cfg(feature = "serde")]
impl serde::Serialize for StreamId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
