//! Result codes of the driver. They are plain integers, since a newer driver may return codes that are unknown here.

use crate::declare::constants;

/// The result code of a driver call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub u32);

/// The meaning of an error code for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device has not finished the work yet.
    NotReady,
    /// The stream captures, or the call would have invalidated a capture.
    Capture,
    /// The driver is not initialised, or has shut down.
    NoDriver,
    /// The context has been destroyed, or the call needs one and the thread has none.
    ContextGone,
    /// The call named a handle that the driver does not know. The context may be intact: a destroyed stream gives this
    /// code too.
    InvalidHandle,
    /// The thread is inside a host function, where the driver must not be called.
    NotPermitted,
    /// The context has failed. All later calls in it will fail too.
    Sticky,
    /// The driver refused this call only.
    Refused,
}

impl Code {
    constants! {
        pub const SUCCESS: Self = CUDA_SUCCESS(0);
        pub const NO_DEVICE: Self = CUDA_ERROR_NO_DEVICE(100);
        /// The call needs a current context, or the current one is not valid.
        pub const INVALID_CONTEXT: Self = CUDA_ERROR_INVALID_CONTEXT(201);
        pub const NOT_SUPPORTED: Self = CUDA_ERROR_NOT_SUPPORTED(801);
        /// The event was last recorded in a stream that captures.
        pub const CAPTURED_EVENT: Self = CUDA_ERROR_CAPTURED_EVENT(907);
    }

    /// Returns `true` if the call succeeded.
    #[inline]
    pub fn is_ok(self) -> bool {
        self == Self::SUCCESS
    }

    /// Returns the code as an error unless the call succeeded.
    ///
    /// # Errors
    ///
    /// Returns any code but [`SUCCESS`](Self::SUCCESS).
    #[inline]
    pub fn ok(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }

    /// As [`ok`](Self::ok), with the name of the driver function in the error.
    ///
    /// # Errors
    ///
    /// Returns any code but [`SUCCESS`](Self::SUCCESS).
    #[inline]
    pub fn ok_of(self, call: &'static str) -> Result<(), Failed> {
        self.ok().map_err(|code| Failed { call, code })
    }
}

/// Declares what error codes mean.
macro_rules! faults {
    ($($fault:ident { $($name:ident = $code:literal,)* })*) => {
        impl Code {
            /// Returns the meaning of an error code, after the comments of `CUresult` in `cuda.h`. An unknown code counts
            /// as [`Fault::Refused`]: if there is more to it, the next call will fail as well.
            #[allow(clippy::manual_range_patterns, reason = "each code has a name")]
            pub fn fault(self) -> Fault {
                match self.0 {
                    $($($code)|* => Fault::$fault,)*
                    _ => Fault::Refused,
                }
            }

            /// Returns the codes as they are declared here.
            #[cfg(test)]
            pub(crate) fn faults() -> Vec<header_check::Item> {
                vec![$($(header_check::Item::constant(stringify!($name), &$code),)*)*]
            }
        }
    };
}

faults! {
    NotReady {
        CUDA_ERROR_NOT_READY = 600,
    }
    Capture {
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
        CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
        CUDA_ERROR_CAPTURED_EVENT = 907,
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    }
    NoDriver {
        CUDA_ERROR_NOT_INITIALIZED = 3,
        CUDA_ERROR_DEINITIALIZED = 4,
    }
    ContextGone {
        CUDA_ERROR_INVALID_CONTEXT = 201,
        CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    }
    InvalidHandle {
        CUDA_ERROR_INVALID_HANDLE = 400,
    }
    NotPermitted {
        CUDA_ERROR_NOT_PERMITTED = 800,
    }
    Sticky {
        CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
        CUDA_ERROR_INVALID_DEVICE = 101,
        CUDA_ERROR_ECC_UNCORRECTABLE = 214,
        CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
        CUDA_ERROR_CONTAINED = 226,
        CUDA_ERROR_ILLEGAL_ADDRESS = 700,
        CUDA_ERROR_LAUNCH_TIMEOUT = 702,
        CUDA_ERROR_ASSERT = 710,
        CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
        CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
        CUDA_ERROR_MISALIGNED_ADDRESS = 716,
        CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
        CUDA_ERROR_INVALID_PC = 718,
        CUDA_ERROR_LAUNCH_FAILED = 719,
        CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
        // After these two, only another process can use CUDA. The other codes of MPS (805 to 809) concern a connection or
        // one request on it, not the contexts that exist.
        CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
        CUDA_ERROR_EXTERNAL_DEVICE = 911,
        // The driver returns it for no single call.
        CUDA_ERROR_UNKNOWN = 999,
    }
}

/// A failed driver call, so that a warning can name the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The driver function, as `cuEventCreate`.
    pub call: &'static str,
    /// What it returned.
    pub code: Code,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_what_the_headers_say() {
        for (code, fault) in [
            (600, Fault::NotReady),
            (901, Fault::Capture),
            (4, Fault::NoDriver),
            (201, Fault::ContextGone),
            (709, Fault::ContextGone),
            (400, Fault::InvalidHandle),
            (800, Fault::NotPermitted),
            (700, Fault::Sticky),
            (719, Fault::Sticky),
            (804, Fault::Refused),
            (805, Fault::Refused),
            (806, Fault::Refused),
            (807, Fault::Refused),
            (808, Fault::Refused),
            (809, Fault::Refused),
            (810, Fault::Sticky),
            (811, Fault::Refused),
            (911, Fault::Sticky),
            (1, Fault::Refused),
            (123_456, Fault::Refused),
        ] {
            assert_eq!(Code(code).fault(), fault, "{code}");
        }
        assert!(Code(0).is_ok() && Code(1).ok().is_err());
    }
}
