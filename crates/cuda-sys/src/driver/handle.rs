//! Handles of the driver's objects, and its enums.

use std::ffi::{c_uint, c_void};
use std::ptr;

use crate::declare::constants;

/// A handle of an event: a `CUevent` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Event(pub *mut c_void);

/// A handle of a context, or null for none: a `CUcontext` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct RawContext(pub *mut c_void);

/// A stream, which may be one of the three special values 0, 1 and 2: a `CUstream` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct RawStream(pub *mut c_void);

// SAFETY: a handle only names an object of the driver. The driver accepts it from any thread, and nothing here
// dereferences it.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}
// SAFETY: as above.
unsafe impl Send for RawContext {}
// SAFETY: as above.
unsafe impl Sync for RawContext {}
// SAFETY: as above.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawContext {
    /// No context.
    pub const NONE: Self = Self(ptr::null_mut());
}

impl RawStream {
    /// `CU_STREAM_LEGACY`; the null handle means the same stream.
    pub const LEGACY: Self = Self(ptr::null_mut());
    /// `CU_STREAM_PER_THREAD`.
    pub const PER_THREAD: Self = Self(ptr::without_provenance_mut(2));

    /// Returns whether the handle means a default stream of the current context.
    #[inline]
    pub fn is_default(self) -> bool {
        self == Self::LEGACY || self.is_per_thread()
    }

    /// Returns whether the handle means a different stream on each thread.
    #[inline]
    pub fn is_per_thread(self) -> bool {
        self == Self::PER_THREAD
    }

    /// Returns one handle for a stream that has two.
    #[inline]
    #[must_use]
    pub fn canonical(self) -> Self {
        if self.0.addr() == 1 {
            Self::LEGACY
        } else {
            self
        }
    }
}

/// The state of a stream's capture: a `CUstreamCaptureStatus` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureStatus(pub c_uint);

impl CaptureStatus {
    constants! {
        /// The stream does not capture.
        pub const NONE: Self = CU_STREAM_CAPTURE_STATUS_NONE(0);
        /// The stream captures. Any other value is a capture that has been invalidated.
        pub const ACTIVE: Self = CU_STREAM_CAPTURE_STATUS_ACTIVE(1);
    }
}

/// How a thread takes part in captures: a `CUstreamCaptureMode` of `cuda.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureMode(pub c_uint);

impl CaptureMode {
    constants! {
        /// The thread's calls neither fail because of captures on other threads nor invalidate them.
        pub const RELAXED: Self = CU_STREAM_CAPTURE_MODE_RELAXED(2);
    }
}
