//! Opens the GPU, if there is one.

mod kernels;
mod network;

pub use network::OnGpu;

use std::sync::Arc;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::is_culib_present;
use profiler_runtime::cuda::{Status, status};

/// Opens the first GPU.
///
/// # Errors
///
/// Returns the reason in one line if there is none.
///
/// # Examples
///
/// ```
/// use profiler_examples::device;
///
/// match device::open() {
///     Ok(context) => println!("runs on {}", device::name(&context)),
///     Err(reason) => println!("runs on the CPU: {reason}"),
/// }
/// ```
pub fn open() -> Result<Arc<CudaContext>, String> {
    // cudarc panics if the library is missing.
    // SAFETY: this loads the library and unloads it again, which any program may do.
    if !unsafe { is_culib_present() } {
        return Err("libcuda.so.1 cannot be loaded: there is no CUDA driver".to_owned());
    }
    match status() {
        // The program uses the GPU even if GPU times cannot be measured.
        Status::Ready { .. } | Status::Off | Status::NotBuilt => {}
        missing => return Err(missing.to_string()),
    }
    CudaContext::new(0).map_err(|error| format!("the first device cannot be used: {error}"))
}

/// Returns the name of a device.
#[must_use]
pub fn name(context: &CudaContext) -> String {
    context
        .name()
        .unwrap_or_else(|error| format!("a device without a name ({error})"))
}

/// Returns `true` for a device of the simulated driver of the tests. Its kernels take time but
/// compute nothing, so there is no result to verify.
#[must_use]
pub fn is_simulated(context: &CudaContext) -> bool {
    name(context).starts_with("Simulated Device")
}
