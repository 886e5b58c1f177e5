//! Result codes of the driver, as plain integers: it may return codes that no header here knows.

/// What a driver call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) u32);

/// What a code other than success means for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The work is not done yet.
    NotReady,
    /// The stream is part of a capture, or the call would have spoilt one.
    Capture,
    /// The driver is not there yet, or not any more.
    NoDriver,
    /// The context is not there any more, or not where the call needs it.
    ContextGone,
    /// The driver does not know a handle that this call named. It says nothing of the context: a stream that its
    /// owner destroyed answers the same.
    InvalidHandle,
    /// The driver must not be called here: the thread is inside a host function.
    NotPermitted,
    /// The context has failed, and so will everything in it from now on.
    Sticky,
    /// This call alone was refused.
    Refused,
}

impl Code {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);

    pub(crate) fn is_ok(self) -> bool {
        self == Self::SUCCESS
    }

    pub(crate) fn ok(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }

    /// As [`ok`](Self::ok), with the name of the call that returned it.
    pub(crate) fn ok_of(self, call: &'static str) -> Result<(), Failed> {
        self.ok().map_err(|code| Failed { call, code })
    }

    /// By the meanings that the driver's headers give the codes. What they do not name is taken for
    /// the refusal of one call: the next call tells more.
    pub(crate) fn fault(self) -> Fault {
        match self.0 {
            600 => Fault::NotReady,
            900..=908 => Fault::Capture,
            3 | 4 => Fault::NoDriver,
            // Invalid context, context destroyed.
            201 | 709 => Fault::ContextGone,
            400 => Fault::InvalidHandle,
            800 => Fault::NotPermitted,
            // Uncorrectable memory, links and addresses; traps, assertions, time-outs and failed launches;
            // the device lost or to be reset; a client that its MPS server has ended, and a device outside of CUDA
            // that failed, after both of which only another process can use CUDA; and "unknown", which the driver
            // gives to no single call. The other codes of MPS (805 to 809) are about a connection that could not be
            // made, or one request on it: of contexts that there are they say nothing, and the next call does.
            46 | 101 | 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 810 | 911 | 999 => {
                Fault::Sticky
            }
            _ => Fault::Refused,
        }
    }
}

/// A call that did not succeed. Where several calls are made for one purpose, a notice names the one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The driver's name of the call, as `cuEventCreate`.
    pub(crate) call: &'static str,
    pub(crate) code: Code,
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
