//! Launches three kernels on a stream of cudarc, and prints how long they took.

use std::error::Error;
use std::time::Duration;

use cudarc::driver::{CudaContext, LaunchConfig};
use cudarc::nvrtc::Ptx;
use profiler_runtime::{flush, scope, summary};

const PTX: &str = include_str!("work.ptx");

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let module = context.load_module(Ptx::from_src(PTX))?;
    let kernel = module.load_function("work_20us")?;
    let one = LaunchConfig::for_num_elems(1);
    for _ in 0..3 {
        let _scope = scope!("kernel", stream = &stream);
        // SAFETY: the kernel takes no arguments.
        unsafe { stream.launch_builder(&kernel).launch(one) }?;
    }
    stream.synchronize()?;
    flush(Duration::from_secs(20));
    print!("{}", summary().to_json());
    Ok(())
}
