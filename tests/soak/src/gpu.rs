//! The simulated device that the program uses.

use std::process::Command;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use profiler_simulated_driver::Installation;

const ON_DRIVER: &str = "SOAK_ON_DRIVER";

/// Returns `true` if this process has the simulated driver.
pub(crate) fn is_on_driver() -> bool {
    std::env::var_os(ON_DRIVER).is_some()
}

/// Runs the program again with the simulated driver in its library path.
pub(crate) fn start_again_on_driver() -> Result<(), String> {
    let say = |error: &dyn std::error::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(|error| say(&error))?;
    let installed = Installation::new(folder.path())
        .create()
        .map_err(|error| say(&error))?;
    let program = std::env::current_exe().map_err(|error| say(&error))?;
    let mut command: Command = installed.command(
        program,
        "clock real; log off; synchronise abort-from profiler_runtime::",
    );
    let status = command
        .args(std::env::args_os().skip(1))
        .env(ON_DRIVER, "1")
        .status()
        .map_err(|error| say(&error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the measured program ended with {status}"))
    }
}

/// A device with a kernel that takes a given time.
pub(crate) struct Gpu {
    context: Arc<CudaContext>,
    spin: CudaFunction,
}

impl Gpu {
    pub(crate) fn new() -> Result<Self, String> {
        const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry spin_ns(.param .u64 spin_ns_param_0) { ret; }
";
        let failed = |error| format!("the simulated driver: {error}");
        let context = CudaContext::new(0).map_err(failed)?;
        let module = context.load_module(Ptx::from_src(PTX)).map_err(failed)?;
        let spin = module.load_function("spin_ns").map_err(failed)?;
        Ok(Self { context, spin })
    }

    pub(crate) fn stream(&self) -> Result<Arc<CudaStream>, String> {
        self.context
            .new_stream()
            .map_err(|error| format!("cannot create a stream: {error}"))
    }

    /// Launches a kernel of this many nanoseconds.
    pub(crate) fn launch(&self, stream: &CudaStream, ns: u64) -> Result<(), String> {
        let one = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernel takes one 64-bit integer, and touches no memory.
        let launched = unsafe { stream.launch_builder(&self.spin).arg(&ns).launch(one) };
        launched
            .map(drop)
            .map_err(|error| format!("cannot launch a kernel: {error}"))
    }
}
