//! How measuring on the GPU goes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::cuda::context;
use crate::cuda::ffi::code::Code;
use crate::cuda::ffi::driver::Driver;
use crate::cuda::ffi::elapsed;
use crate::cuda::ffi::library;
use crate::cuda::loss::{self, CudaLoss};
use crate::cuda::resolver;
use crate::cuda::status::Status;
use crate::cuda::thread::record_times::{self, RecordTimes};
use crate::diagnostics;
use crate::diagnostics::notices;
use crate::sync::ReentrancyGuard;

/// How measuring on the GPU goes, as part of a [`Summary`](crate::Summary).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CudaHealth {
    /// What there is of CUDA, in a line: see [`Status`](super::Status).
    pub status: String,
    /// Whether GPU times can be taken.
    pub ready: bool,
    /// Scopes whose events have not been read yet; they are in no CUDA column.
    pub in_flight: usize,
    /// Event pairs there are, over all contexts.
    pub pairs: usize,
    /// The most scopes that waited for a device at once.
    pub high_water: usize,
    /// Scopes that were to have a GPU time and have none, for each reason that occurred.
    pub lost: Vec<(CudaLoss, u64)>,
    /// How well it is known where GPU times stand on the host's time line, in nanoseconds; `None` where that
    /// was not found out. Their lengths do not depend on it.
    pub uncertainty_ns: Option<f64>,
    /// Times between events that the driver told and that cannot be: infinite, not a number, negative where one event
    /// is behind the other, or longer than a year. What they were asked for is left out: the length of a scope, which
    /// [`lost`](Self::lost) counts too, its place on the time line, or its share of a future around it.
    pub rejected_times: u64,
    /// How long records of events took.
    pub records: RecordTimes,
    /// Whether a status that is not ready has been told to the user.
    pub(crate) is_known: bool,
}

fn said(status: &str) -> bool {
    notices().iter().any(|notice| notice.contains(status))
}

/// Says that the driver refuses a call.
#[cold]
pub(crate) fn refused(driver: &Driver, call: &str, code: Code) {
    let name = {
        let _busy = ReentrancyGuard::try_enter();
        driver.name_of(code)
    };
    diagnostics::warn_once(&format!(
        "{call} returned {name} ({}): the GPU times it was called for are left out and counted",
        code.0
    ));
}

/// Says that a measured function runs where the driver must not be called. It is not asked for the name of its code.
#[cold]
pub(crate) fn not_permitted() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        diagnostics::warn_once(
            "a measured function runs inside a host function (cuLaunchHostFunc, cuStreamAddCallback), where the CUDA driver \
             must not be called: its GPU times are left out and counted; write `bypass = true` for what runs there",
        );
    }
}

pub(crate) fn health() -> CudaHealth {
    let status = library::known_status();
    let text = status.to_string();
    CudaHealth {
        ready: status.is_ready(),
        // Who left the feature out, or GPU times, knows.
        is_known: matches!(status, Status::Off | Status::NotBuilt) || said(&text),
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
