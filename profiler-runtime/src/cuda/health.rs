//! The state of GPU measurement, and the warnings about it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::cuda::context;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Code;
use crate::cuda::ffi::elapsed;
use crate::cuda::ffi::library;
use crate::cuda::loss::{self, CudaLoss};
use crate::cuda::resolver;
use crate::cuda::status::Status;
use crate::cuda::thread::record_times::{self, RecordTimes};
use crate::diagnostics;
use crate::diagnostics::notices;
use crate::sync::ReentrancyGuard;

/// The state of GPU measurement, as part of a [`Summary`](crate::Summary).
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct CudaHealth {
    /// The state of CUDA in one line: see [`Status`].
    pub status: String,
    /// `true` if GPU times can be measured.
    pub ready: bool,
    /// Scopes whose events have not been read yet. No GPU column includes them.
    pub in_flight: usize,
    /// Event pairs that exist, over all contexts.
    pub pairs: usize,
    /// The most scopes that were seen waiting for a device at once.
    pub high_water: usize,
    /// Scopes that should have a GPU time and have none: their number for each reason that occurred.
    #[cfg_attr(feature = "serde", serde(with = "crate::diagnostics::reason::counts"))]
    pub lost: Vec<(CudaLoss, u64)>,
    /// The uncertainty of where GPU times begin on the host's time line, in nanoseconds; `None` if that was not
    /// determined. The lengths of GPU times do not depend on it.
    pub uncertainty_ns: Option<f64>,
    /// Impossible times between two events that the driver reported: infinite, not a number, negative although the
    /// first event was recorded first, or longer than a year. The value they were needed for is left out: the length of
    /// a scope, which [`lost`](Self::lost) counts too, its place on the time line, or its share of a future around it.
    pub rejected_times: u64,
    /// How long recording events took.
    pub records: RecordTimes,
    /// `true` if the user knows why GPU times cannot be measured, so that no further note is needed.
    pub(crate) is_explained: bool,
}

/// Returns `true` if a warning has reported this status to the user.
fn was_reported(status: &str) -> bool {
    notices().iter().any(|notice| notice.contains(status))
}

/// Returns `true` for a state that needs no explanation: the user chose it, or the program has not loaded the driver and
/// nothing asked for GPU times. (A stream that the program names loads the driver, or reports why that failed.)
fn is_expected(status: &Status) -> bool {
    match status {
        Status::Off | Status::NotBuilt => true,
        Status::NotLoaded => !library::is_asked_for(),
        _ => false,
    }
}

/// Warns that the driver refuses a call.
#[cold]
pub(crate) fn warn_of_refused_call(driver: &impl EventApi, call: &str, code: Code) {
    let name = {
        let _guard = ReentrancyGuard::try_enter();
        driver.name_of(code)
    };
    diagnostics::warn_once(&format!(
        "{call} returned {name} ({}): the GPU times that needed the call are left out and counted",
        code.0
    ));
}

/// Warns that a measured function runs inside a host function.
///
/// The warning has no error name: `cuGetErrorName` must not be called there either.
#[cold]
pub(crate) fn warn_of_host_function() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Relaxed) {
        diagnostics::warn_once(
            "a measured function runs inside a host function (cuLaunchHostFunc, cuStreamAddCallback), where the CUDA driver \
             must not be called: its GPU times are left out and counted; write `bypass = true` for functions that run there",
        );
    }
}

/// Returns the state of GPU measurement.
pub(crate) fn health() -> CudaHealth {
    let status = library::known_status();
    let text = status.to_string();
    CudaHealth {
        ready: status.is_ready(),
        is_explained: is_expected(&status) || was_reported(&text),
        status: text,
        in_flight: resolver::in_flight(),
        pairs: context::all()
            .into_iter()
            .map(context::Context::pairs)
            .sum(),
        high_water: resolver::high_water(),
        lost: loss::counted(),
        uncertainty_ns: resolver::uncertainty(),
        rejected_times: elapsed::rejected(),
        records: record_times::times(),
    }
}
