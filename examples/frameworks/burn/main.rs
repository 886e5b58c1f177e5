//! A network of Burn: each kernel stands at the function that asked for it. With Burn's fusion (`--features fusion`), which decides
//! later what the kernels are, they stand in a row of their own, and Burn says how long those of a function were.

use std::error::Error;

use burn::tensor::{Device, ProfileOptions, Tensor};
use profiler_runtime::{Activity, Profile, measured};

const STEPS: usize = 10;

#[measured]
fn load(device: &Device) -> Tensor<2> {
    Tensor::ones([64, 64], device)
}

#[measured]
fn scale(x: Tensor<2>) -> Tensor<2> {
    x * 2.0 + 1.0
}

#[measured]
fn activate(x: Tensor<2>) -> Tensor<2> {
    x.clone().exp() + x
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    profiler_cubecl::observe();

    let device = Device::cuda(0);
    let (x, trace) = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .kernels(true)
        .run(|_| {
            let x = load(&device);
            for _ in 0..STEPS {
                let _ = activate(scale(x.clone())).into_data();
            }
            x
        });
    println!("{}", trace?.key_averages().kernels());

    // The same by Burn's own account, with what fusion would otherwise hold back.
    let options = ProfileOptions::default().flush();
    let (_, time) = device.profile_with(options, || scale(x))?;
    if let Some(ticks) = pollster::block_on(time.resolve()) {
        println!("scale: {} ns by Burn", ticks.duration().as_nanos());
    }
    Ok(())
}
