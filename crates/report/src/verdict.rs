//! The factor that limits a function.

use std::fmt;

/// The limiting factor of a function.
///
/// Without kernels, it is the CPU or the GPU, by the CPU times and GPU times of the calls. With kernels
/// ([`KeyAverages::kernels`](super::KeyAverages::kernels)), it is decided by what the device did since the calls began:
/// first whether the device was idle for longer than it worked, then what it waited for, or what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Verdict {
    /// The CPU: for most calls, launching takes at least as long as the work on the GPU. With kernels: the device was idle
    /// for at least as long as it worked, and mostly because the next work had not been launched.
    LaunchBound,
    /// Waits on the device: it was idle for at least as long as it worked, although the next work had been launched, such
    /// as for an event of another stream.
    GapBound,
    /// Copies and fills: the device worked for longer than it was idle, and for at least half of that no kernel of the
    /// function ran.
    CopyBound,
    /// The GPU: most calls launch faster than the device works. With kernels: the device worked for longer than it was
    /// idle, and mostly on kernels.
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
            Self::GapBound => "gap-bound",
            Self::CopyBound => "copy-bound",
            Self::DeviceBound => "device-bound",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
