//! The factor that limits a function: the CPU or the GPU.

use std::fmt;

/// The limiting factor of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Verdict {
    /// The CPU: for most calls, launching takes at least as long as the work on the GPU.
    LaunchBound,
    /// The GPU: most calls launch faster than the device works.
    DeviceBound,
}

impl Verdict {
    /// Returns the verdict for this fraction of launch-bound calls.
    pub(super) const fn of_share(launch_bound: f64) -> Self {
        if launch_bound >= 0.5 {
            Self::LaunchBound
        } else {
            Self::DeviceBound
        }
    }

    /// Returns the verdict in a word, as the table shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LaunchBound => "launch-bound",
            Self::DeviceBound => "device-bound",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
