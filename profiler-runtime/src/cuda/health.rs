//! The state of GPU measurement.

use profiler_host::diagnostics::notices;
use profiler_report::CudaHealth;

use crate::cuda::context;
use crate::cuda::ffi::elapsed;
use crate::cuda::ffi::library;
use crate::cuda::ffi::status::Status;
use crate::cuda::loss;
use crate::cuda::resolver;
use crate::cuda::stream::default;
use crate::cuda::thread::record_times;

/// Returns `true` if a warning has reported this status to the user.
fn was_reported(status: &str) -> bool {
    notices().iter().any(|notice| notice.contains(status))
}

/// Returns `true` for a state that needs no explanation: the user chose it, or the program has not loaded the driver and
/// nothing asked for GPU times. (A stream that the program names loads the driver, or reports why that failed.)
fn is_expected(status: &Status) -> bool {
    match status {
        Status::Off | Status::NotBuilt => true,
        Status::NotLoaded => !library::is_asked_for() && default::get().is_none(),
        _ => false,
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
        non_exhaustive: (),
    }
}
