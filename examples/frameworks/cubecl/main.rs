//! Three threads ask for kernels of CubeCL, which launches them from a thread of its own. Each kernel stands at the function
//! that asked for it: `profiler_cubecl::observe` is the only line for that.

use std::error::Error;
use std::thread;

use cubecl::cuda::CudaDevice;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::{self, Device};
use profiler_runtime::{Activity, Profile, measured};

const LENGTH: usize = 4;
const STEPS: usize = 100;

#[cube(launch)]
fn add_one(input: &[f32], output: &mut [f32]) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] + 1.0;
    }
}

#[cube(launch)]
fn double(input: &[f32], output: &mut [f32]) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] * 2.0;
    }
}

#[cube(launch)]
fn square(input: &[f32], output: &mut [f32]) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] * input[ABSOLUTE_POS];
    }
}

/// What the kernels of a thread read and write.
struct Data {
    input: Handle,
    output: Handle,
}

impl Data {
    fn new(client: &Client) -> Self {
        Self {
            input: client.create_from_slice(f32::as_bytes(&[1.0, 2.0, 3.0, 4.0])),
            output: client.empty(LENGTH * size_of::<f32>()),
        }
    }

    fn arguments(&self) -> (BufferArg, BufferArg) {
        // SAFETY: each buffer has this many elements.
        let argument =
            |buffer: &Handle| unsafe { BufferArg::from_raw_parts(buffer.clone(), LENGTH) };
        (argument(&self.input), argument(&self.output))
    }
}

fn blocks() -> CubeCount {
    CubeCount::Static(1, 1, 1)
}

#[measured]
fn forward(client: &Client, data: &Data) {
    let (input, output) = data.arguments();
    add_one::launch(
        client,
        blocks(),
        CubeDim::new(client, LENGTH),
        input,
        output,
    );
    activate(client, data);
}

#[measured]
fn activate(client: &Client, data: &Data) {
    let (input, output) = data.arguments();
    double::launch(
        client,
        blocks(),
        CubeDim::new(client, LENGTH),
        input,
        output,
    );
}

#[measured]
fn backward(client: &Client, data: &Data) {
    let (input, output) = data.arguments();
    square::launch(
        client,
        blocks(),
        CubeDim::new(client, LENGTH),
        input,
        output,
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    profiler_cubecl::observe();

    let client = Device::Cuda(CudaDevice::default()).client();
    let work = |step: fn(&Client, &Data)| {
        let data = Data::new(&client);
        for _ in 0..STEPS {
            step(&client, &data);
        }
        client.read_one(data.output)
    };
    let (read, trace) = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .kernels(true)
        .run(|_| {
            thread::scope(|threads| {
                [forward, forward, backward]
                    .map(|step| threads.spawn(move || work(step)))
                    .map(|thread| thread.join().expect("it does not panic"))
            })
        });
    for output in read {
        output.map_err(|error| format!("{error:?}"))?;
    }
    println!("{}", trace?.key_averages().kernels());
    Ok(())
}
