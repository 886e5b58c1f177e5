//! The state of CUPTI in this process, as users see it.

use std::fmt;
use std::time::Duration;

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
use profiler_cuda_sys::cupti::{Cupti, Refused};

use super::recorder;

/// The state of CUPTI in this process: whether sessions record kernels, copies, fills and waits. It displays as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelStatus {
    /// No session has asked for kernels yet.
    #[default]
    NotRequested,
    /// The crate was built without its feature `cuda`, or for WebAssembly.
    NotBuilt,
    /// The program has not initialised the CUDA driver yet. CUPTI is looked for once it has.
    NoDriver,
    /// CUPTI is being loaded and enabled.
    Starting,
    /// The library was not found.
    NotFound {
        /// The error of the system's dynamic loader, or the places that were searched.
        reason: String,
    },
    /// The library is too old, or no CUPTI.
    TooOld {
        /// The path of the library, or its name if the program had loaded it.
        library: String,
        /// The first required function that it lacks, or its version.
        reason: String,
    },
    /// Another tool uses CUPTI, which serves one at a time.
    Taken {
        /// The name of the tool, if CUPTI knows it.
        tool: Option<String>,
    },
    /// CUPTI refused a call.
    Refused {
        /// The function of CUPTI.
        call: String,
        /// Its result code.
        code: u32,
        /// CUPTI's name of the code, if it has one.
        name: String,
    },
    /// CUPTI dates its records by a clock that cannot be related to the profiler's: another profiler in the process has
    /// given it one.
    UnusableClock {
        /// What the clock does.
        reason: String,
    },
    /// Kernels are recorded while a session records.
    Ready {
        /// The path of the library, or its name if the program had loaded it.
        library: String,
        /// The number that the library returns as its version.
        version: u32,
        /// How long it took to enable CUPTI for the first time.
        first_enable: Duration,
    },
}

impl KernelStatus {
    /// Returns `true` if kernels can be recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::cuda::KernelStatus;
    ///
    /// assert!(!KernelStatus::NotRequested.is_ready());
    /// ```
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
impl KernelStatus {
    /// Returns the state after a library has refused a call.
    pub(super) fn refused(cupti: &Cupti, refused: Refused) -> Self {
        Self::Refused {
            call: refused.call.to_owned(),
            code: refused.code.0,
            name: cupti.name_of(refused.code),
        }
    }
}

impl fmt::Display for KernelStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRequested => f.write_str("no session has asked for kernels"),
            Self::NotBuilt if cfg!(target_family = "wasm") => {
                f.write_str("WebAssembly has no CUPTI")
            }
            Self::NotBuilt => f.write_str(
                "profiler-runtime was built without its feature `cuda`: build it with the feature",
            ),
            Self::NoDriver => f.write_str(
                "the program has not initialised the CUDA driver, which fails without a device: see what `nvidia-smi` says",
            ),
            Self::Starting => f.write_str(
                "CUPTI was still starting: record a step of warm-up, or a longer window",
            ),
            Self::NotFound { reason } => write!(
                f,
                "CUPTI was not found ({reason}): install it (it is part of the CUDA toolkit and of the Python package \
                 nvidia-cuda-cupti), or name its library in PROFILER_CUPTI_LIBRARY"
            ),
            Self::TooOld { library, reason } => write!(
                f,
                "the CUPTI library {library} {reason}: install CUPTI 11.8 or later, or name it in PROFILER_CUPTI_LIBRARY"
            ),
            Self::Taken { tool: Some(tool) } => write!(
                f,
                "another tool uses CUPTI ({tool}): run the program without it to record kernels here"
            ),
            Self::Taken { tool: None } => f.write_str(
                "another tool uses CUPTI (such as Nsight, or a profiler in the process): run the program without it to \
                 record kernels here",
            ),
            Self::Refused { call, code, name } => {
                write!(
                    f,
                    "CUPTI refused {call} ({name}, code {code}): see its release notes for this driver and device"
                )
            }
            Self::UnusableClock { reason } => write!(
                f,
                "the times of kernels are not known, since the clock of CUPTI {reason}: run the program without another \
                 profiler that gives CUPTI a clock"
            ),
            Self::Ready {
                library, version, ..
            } => write!(f, "CUPTI {version} ({library})"),
        }
    }
}

/// Returns whether sessions can record kernels. Loads nothing: CUPTI is looked for when a session begins to record.
///
/// # Examples
///
/// ```
/// println!("{}", profiler_runtime::cuda::kernel_status());
/// ```
#[must_use]
pub fn kernel_status() -> KernelStatus {
    recorder::status()
}

/// Returns why a window has no kernels, and what to do about it. Returns `None` if they were not required and the program
/// does not use CUDA, or the crate was built without CUPTI.
pub(crate) fn why_no_kernels(is_required: bool) -> Option<String> {
    let status = match recorder::status() {
        KernelStatus::NotRequested => KernelStatus::NoDriver,
        // It has become ready after the window closed.
        KernelStatus::Ready { .. } => KernelStatus::Starting,
        status => status,
    };
    let is_expected = matches!(status, KernelStatus::NoDriver | KernelStatus::NotBuilt);
    (is_required || !is_expected).then(|| status.to_string())
}
