//! Result codes of NVML.

use std::fmt;

/// A result code. Kept as an integer, since newer libraries return codes that this version does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub u32);

impl Code {
    /// `NVML_ERROR_NOT_SUPPORTED`.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// `NVML_ERROR_INSUFFICIENT_SIZE`.
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    const FUNCTION_NOT_FOUND: Self = Self(13);
    /// `NVML_ERROR_GPU_IS_LOST`.
    pub const GPU_LOST: Self = Self(15);

    /// Returns the code as an error unless it means success.
    ///
    /// # Errors
    ///
    /// Returns any code but zero.
    pub fn ok(self) -> Result<(), Self> {
        if self.0 == 0 { Ok(()) } else { Err(self) }
    }

    /// Returns `true` if a later call has the same result.
    pub fn is_final(self) -> bool {
        matches!(self, Self::NOT_SUPPORTED | Self::FUNCTION_NOT_FOUND)
    }

    fn meaning(self) -> &'static str {
        match self.0 {
            1 => "NVML is not initialised",
            2 => "an argument is not valid",
            3 => "the device does not support it",
            4 => "the user has no permission",
            6 => "it was not found",
            9 => {
                "no NVIDIA driver is loaded: load its kernel module, or run on a machine with a GPU"
            }
            12 => "a library of the driver is missing",
            13 => "the driver lacks a function",
            15 => {
                "the device is lost: it has fallen off the bus, and the machine must be restarted"
            }
            18 => {
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
