//! What programs do less often with kernels of CubeCL. The first argument says what.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use cubecl::cuda::CudaDevice;
use cubecl::execution::{StreamMode, StreamModeOverride};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::{self, Device};
use profiler_cubecl::{Observer, counts};
use profiler_runtime::cuda::{LaunchHookState, launch_hook_state};
use profiler_runtime::measured;

const LENGTH: usize = 4;
const STEPS: u32 = 100;

#[cube(launch)]
fn add_one(input: &[f32], output: &mut [f32]) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] + 1.0;
    }
}

struct Work {
    client: Client,
    input: Handle,
    output: Handle,
}

impl Work {
    fn new() -> Self {
        let client = Device::Cuda(CudaDevice::default()).client();
        let input = client.create_from_slice(f32::as_bytes(&[1.0, 2.0, 3.0, 4.0]));
        let output = client.empty(LENGTH * size_of::<f32>());
        Self {
            client,
            input,
            output,
        }
    }

    fn launch(&self) {
        // SAFETY: each buffer has this many elements.
        let argument =
            |buffer: &Handle| unsafe { BufferArg::from_raw_parts(buffer.clone(), LENGTH) };
        let (input, output) = (argument(&self.input), argument(&self.output));
        let dimension = CubeDim::new(&self.client, LENGTH);
        add_one::launch(
            &self.client,
            CubeCount::Static(1, 1, 1),
            dimension,
            input,
            output,
        );
    }

    fn wait(&self) {
        self.client
            .read_one(self.output.clone())
            .expect("the output");
    }
}

#[measured]
fn forward(work: &Work) {
    work.launch();
}

/// Asks for kernels that CubeCL compiles and does not launch.
#[measured]
fn warm_up(work: &Work) {
    let _discarded = StreamModeOverride::new(StreamMode::Discard, &work.client);
    work.launch();
}

#[measured]
fn after(work: &Work) {
    work.launch();
}

/// Returns the GPU time of `forward` once all kernels have been reported, each of 30 µs or more.
fn reported() -> f64 {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let summary = profiler_runtime::summary();
        let row = summary
            .row("with_cubecl_otherwise::forward")
            .expect("it was called");
        let ns = row.cuda.as_ref().map_or(0.0, |cuda| cuda.total_ns);
        if ns >= 30_000.0 * f64::from(STEPS) || Instant::now() > limit {
            return ns;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the nanoseconds that the thread which asks needs for a launch that meets no full queue.
fn cost(work: &Work) -> u128 {
    const ROUNDS: u32 = 2_000;
    let times = (0..ROUNDS).map(|_| {
        work.wait();
        let start = Instant::now();
        (0..8).for_each(|_| forward(work));
        start.elapsed().as_nanos() / 8
    });
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let _profiler = profiler_runtime::init().expect("no setting is wrong");
    let what = env::args().nth(1).expect("an argument");
    match &*what {
        "unobserved" | "cost-unobserved" => {}
        "other-device" => assert!(Observer::new().devices([1]).install()),
        "device-times" => assert!(Observer::new().device_times(true).install()),
        _ => {
            assert!(profiler_cubecl::observe());
            assert!(!profiler_cubecl::observe(), "the first one stays");
        }
    }
    let work = Work::new();
    match &*what {
        "never-launched" => {
            // A measured call has the profiler look for the driver.
            while launch_hook_state() != LaunchHookState::Called {
                forward(&work);
                work.wait();
            }
            for _ in 0..STEPS {
                warm_up(&work);
                after(&work);
            }
        }
        "cost" | "cost-unobserved" => println!("{} ns a launch", cost(&work)),
        _ => (0..STEPS).for_each(|_| forward(&work)),
    }
    work.wait();
    println!("{:?}", counts());
    if what == "device-times" {
        println!("{} ns reported", reported());
    }
}
