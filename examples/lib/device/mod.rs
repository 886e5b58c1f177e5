//! The GPU, where there is one.

mod kernels;
mod network;

pub use network::OnGpu;

use std::sync::Arc;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::is_culib_present;
use profiler_runtime::cuda::{Status, status};

/// The first GPU.
///
/// # Errors
///
/// If there is none: why, in a line.
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
    // cudarc panics where there is no library.
    // SAFETY: it loads the library and unloads it again, as any program may.
    if !unsafe { is_culib_present() } {
        return Err("there is no CUDA driver: libcuda.so.1 cannot be loaded".to_owned());
    }
    match status() {
        // Without GPU times a program uses the GPU all the same.
        Status::Ready { .. } | Status::Off | Status::NotBuilt => {}
        missing => return Err(missing.to_string()),
    }
    CudaContext::new(0).map_err(|error| format!("the first device cannot be used: {error}"))
}

/// What a device calls itself.
#[must_use]
pub fn name(context: &CudaContext) -> String {
    context
        .name()
        .unwrap_or_else(|error| format!("a device without a name ({error})"))
}

/// Whether the device is that of the simulated driver of the tests: its kernels take time and compute
/// nothing, so there is nothing to verify.
#[must_use]
pub fn is_simulated(context: &CudaContext) -> bool {
    name(context).starts_with("Simulated Device")
}
