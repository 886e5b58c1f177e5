//! Result codes of the driver. They are plain integers, since a newer driver may return codes that are unknown here.

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
    /// `CUDA_SUCCESS`.
    pub const SUCCESS: Self = Self(0);
    /// `CUDA_ERROR_NO_DEVICE`.
    pub const NO_DEVICE: Self = Self(100);
    /// `CUDA_ERROR_INVALID_CONTEXT`: the call needs a current context, or the current one is not valid.
    pub const INVALID_CONTEXT: Self = Self(201);
    /// `CUDA_ERROR_NOT_SUPPORTED`.
    pub const NOT_SUPPORTED: Self = Self(801);
    /// `CUDA_ERROR_CAPTURED_EVENT`: the event was last recorded in a stream that captures.
    pub const CAPTURED_EVENT: Self = Self(907);

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

    /// Returns the meaning of an error code, after the comments of `CUresult` in `cuda.h`. An unknown code counts as
    /// [`Fault::Refused`]: if there is more to it, the next call will fail as well.
    pub fn fault(self) -> Fault {
        match self.0 {
            600 => Fault::NotReady,
            900..=908 => Fault::Capture,
            3 | 4 => Fault::NoDriver,
            // Invalid context, context destroyed.
            201 | 709 => Fault::ContextGone,
            400 => Fault::InvalidHandle,
            800 => Fault::NotPermitted,
            // Uncorrectable errors of memory and links, illegal addresses, traps, assertions, time-outs and failed
            // launches; a device that is lost or must be reset; an MPS client that its server has terminated, and a
            // failed external device, after both of which only another process can use CUDA; and "unknown", which the
            // driver returns for no single call. The other MPS codes (805 to 809) concern a connection or one request
            // on it, not the contexts that exist.
            46 | 101 | 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 810 | 911 | 999 => {
                Fault::Sticky
            }
            _ => Fault::Refused,
        }
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
