//! What programs do less often with kernels of CubeCL. The first argument says what.

use std::env;
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use cubecl::cuda::CudaDevice;
use cubecl::execution::{StreamMode, StreamModeOverride};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::{self, Device};
use profiler_cubecl::{Observer, counts};
use profiler_runtime::cuda::{LaunchHookState, launch_hook_state, set_launch_hook};
use profiler_runtime::measured;

const LENGTH: usize = 4;
const STEPS: u32 = 100;
/// After this time, what a program waits for does not come.
const LIMIT: Duration = Duration::from_secs(60);

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
        Self::on(0)
    }

    fn on(device: usize) -> Self {
        let client = Device::Cuda(CudaDevice::new(device)).client();
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

/// Returns the GPU time of all kernels once that of the last one, which `after` asks for, has been reported.
fn reported(work: &Work) -> f64 {
    after(work);
    let limit = Instant::now() + LIMIT;
    loop {
        let summary = profiler_runtime::summary();
        let [before, last] = ["forward", "after"].map(|function| {
            let row = summary.row(&format!("with_cubecl_otherwise::{function}"));
            let cuda = row.expect("it was called").cuda.as_ref();
            cuda.map_or(0.0, |cuda| cuda.total_ns)
        });
        if last > 0.0 {
            return before + last;
        }
        assert!(Instant::now() < limit, "no time was reported");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Launches until the launch hook is called for each launch. A measured call has the profiler look for the driver.
fn until_called(work: &Work) {
    let limit = Instant::now() + LIMIT;
    while launch_hook_state() != LaunchHookState::Called {
        assert!(Instant::now() < limit, "no session records kernels");
        forward(work);
        work.wait();
    }
}

/// Two runners ask for launches at the same time, as they do when CubeCL tunes itself.
fn launch_on_runners() {
    let (both, done) = (Barrier::new(2), channel());
    let works = [0, 1].map(Work::on);
    thread::scope(|threads| {
        for work in &works {
            let (both, done) = (&both, done.0.clone());
            threads.spawn(move || {
                let launched = work.client.exclusive(|| {
                    both.wait();
                    (0..STEPS).for_each(|_| forward(work));
                    both.wait();
                });
                launched.expect("it does not panic");
                done.send(()).expect("it is awaited");
            });
        }
        for _ in &works {
            if done.1.recv_timeout(LIMIT).is_err() {
                // The threads cannot be joined.
                eprintln!("the runners wait for each other");
                std::process::abort();
            }
        }
    });
    works.iter().for_each(Work::wait);
}

/// Returns the nanoseconds that the thread which asks needs for a launch that meets no full queue.
fn cost(work: &Work) -> u128 {
    const ROUNDS: u32 = 2_000;
    until_called(work);
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
        "on-runners" => assert!(Observer::new().devices([0, 1]).install()),
        "other-hook" => {
            assert!(set_launch_hook(|_| None));
            assert!(!Observer::new().device_times(true).install());
        }
        "device-times" => assert!(Observer::new().device_times(true).install()),
        _ => {
            assert!(profiler_cubecl::observe());
            assert!(!profiler_cubecl::observe(), "the first one stays");
        }
    }
    let work = Work::new();
    match &*what {
        "never-launched" => {
            until_called(&work);
            for _ in 0..STEPS {
                warm_up(&work);
                after(&work);
            }
        }
        // Each thread has a stream id of its own.
        "streams" => {
            until_called(&work);
            for _ in 0..STEPS {
                thread::scope(|threads| {
                    threads.spawn(|| warm_up(&work));
                });
            }
            after(&work);
        }
        "on-runners" => launch_on_runners(),
        "cost" | "cost-unobserved" => println!("{} ns a launch", cost(&work)),
        _ => (0..STEPS).for_each(|_| forward(&work)),
    }
    if matches!(&*what, "device-times" | "other-hook") {
        println!("{} ns reported", reported(&work));
    }
    work.wait();
    println!("{:?}", counts());
}
