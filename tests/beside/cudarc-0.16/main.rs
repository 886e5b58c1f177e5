//! Launches kernels on a stream of an older cudarc and on one of the newest, in one context, and
//! prints how long they took.

use std::error::Error;
use std::time::Duration;

use profiler_runtime::cuda::Stream;
use profiler_runtime::{flush, scope, summary};

const PTX: &str = include_str!("../work.ptx");

fn launch_by_older_cudarc() -> Result<(), Box<dyn Error>> {
    use older_cudarc::driver::{CudaContext, LaunchConfig};
    use older_cudarc::nvrtc::Ptx;

    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(PTX))?;
    let kernel = module.load_function("work_20us")?;
    let one = LaunchConfig::for_num_elems(1);
    // SAFETY: both are released after the scopes that use them have been measured.
    let handle = unsafe { Stream::from_raw(stream.cu_stream().cast(), context.cu_ctx().cast()) };
    for _ in 0..3 {
        let _scope = scope!("older", stream = &handle);
        // SAFETY: the kernel takes no arguments.
        unsafe { stream.launch_builder(&kernel).launch(one) }?;
    }
    stream.synchronize()?;
    flush(Duration::from_secs(20));
    Ok(())
}

fn launch_by_newest_cudarc() -> Result<(), Box<dyn Error>> {
    use cudarc::driver::{CudaContext, LaunchConfig};
    use cudarc::nvrtc::Ptx;

    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(PTX))?;
    let kernel = module.load_function("work_50us")?;
    let one = LaunchConfig::for_num_elems(1);
    for _ in 0..2 {
        let _scope = scope!("newest", stream = &stream);
        // SAFETY: the kernel takes no arguments.
        unsafe { stream.launch_builder(&kernel).launch(one) }?;
    }
    stream.synchronize()?;
    flush(Duration::from_secs(20));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Kept alive, so that both use the same context.
    let _context = cudarc::driver::CudaContext::new(0)?;
    launch_by_older_cudarc()?;
    launch_by_newest_cudarc()?;
    print!("{}", summary().to_json());
    Ok(())
}
