//! Result codes of NVML.

use std::fmt;

use crate::declare::constants;

/// A result code. Kept as an integer, since newer libraries return codes that this version does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub u32);

impl Code {
    constants! {
        const SUCCESS: Self = NVML_SUCCESS(0);
        const UNINITIALIZED: Self = NVML_ERROR_UNINITIALIZED(1);
        const INVALID_ARGUMENT: Self = NVML_ERROR_INVALID_ARGUMENT(2);
        pub const NOT_SUPPORTED: Self = NVML_ERROR_NOT_SUPPORTED(3);
        const NO_PERMISSION: Self = NVML_ERROR_NO_PERMISSION(4);
        const NOT_FOUND: Self = NVML_ERROR_NOT_FOUND(6);
        pub const INSUFFICIENT_SIZE: Self = NVML_ERROR_INSUFFICIENT_SIZE(7);
        const DRIVER_NOT_LOADED: Self = NVML_ERROR_DRIVER_NOT_LOADED(9);
        const LIBRARY_NOT_FOUND: Self = NVML_ERROR_LIBRARY_NOT_FOUND(12);
        const FUNCTION_NOT_FOUND: Self = NVML_ERROR_FUNCTION_NOT_FOUND(13);
        pub const GPU_LOST: Self = NVML_ERROR_GPU_IS_LOST(15);
        const VERSION_MISMATCH: Self = NVML_ERROR_LIB_RM_VERSION_MISMATCH(18);
    }

    /// Returns the code as an error unless it means success.
    ///
    /// # Errors
    ///
    /// Returns any code but zero.
    pub fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// Returns `true` if a later call has the same result.
    pub fn is_final(self) -> bool {
        matches!(self, Self::NOT_SUPPORTED | Self::FUNCTION_NOT_FOUND)
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::UNINITIALIZED => "NVML is not initialised",
            Self::INVALID_ARGUMENT => "an argument is not valid",
            Self::NOT_SUPPORTED => "the device does not support it",
            Self::NO_PERMISSION => "the user has no permission",
            Self::NOT_FOUND => "it was not found",
            Self::DRIVER_NOT_LOADED => {
                "no NVIDIA driver is loaded: load its kernel module, or run on a machine with a GPU"
            }
            Self::LIBRARY_NOT_FOUND => "a library of the driver is missing",
            Self::FUNCTION_NOT_FOUND => "the driver lacks a function",
            Self::GPU_LOST => {
                "the device is lost: it has fallen off the bus, and the machine must be restarted"
            }
            Self::VERSION_MISMATCH => {
                "library and kernel module of the driver have different versions, as after an update: restart the \
                 machine"
            }
            _ => "see `nvmlReturn_t` in NVIDIA's manual",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}: {}", self.0, self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_what_to_do() {
        let text = Code(18).to_string();
        assert!(
            text.starts_with("code 18: ") && text.ends_with("restart the machine"),
            "{text}"
        );
        assert!(Code(4711).to_string().contains("nvmlReturn_t"));
        assert!(Code(0).ok().is_ok() && Code::NOT_SUPPORTED.is_final());
        assert!(!Code::GPU_LOST.is_final());
    }
}
