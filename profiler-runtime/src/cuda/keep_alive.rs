//! What keeps a stream alive while something is measured on it.

use std::fmt;
#[cfg(all(feature = "cudarc-0_19", not(target_family = "wasm")))]
use std::sync::Arc;

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
