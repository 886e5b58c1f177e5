//! Measures what a call with a GPU time costs its thread beyond its two event records, in time,
//! memory and driver calls, and from which call rate on GPU times are lost.
//!
//! Runs itself again with a simulated driver with a real clock, like a program with a GPU.

mod background;
mod cost;
mod device;
mod kernels;
mod launch_queue;
#[path = "../../harness/measured.rs"]
mod measured;
mod processors;
mod sustained;
mod variants;

/// The runtime's queue, which is no part of its interface.
#[path = "../../../crates/host/src/sync"]
#[allow(
    dead_code,
    unreachable_pub,
    unused_macros,
    reason = "each file is included whole"
)]
#[allow(
    clippy::inline_always,
    reason = "as in the runtime, whose measured path depends on it"
)]
mod sync {
    pub(crate) mod padded;
    pub(crate) mod primitive;
    pub(crate) mod queue;
}

use std::env;
use std::fs;

use bench_harness::memory::CountingAllocator;
use bench_harness::process::{self, hand_over};
use bench_harness::{Options, Outcome, Report, Table};
use profiler_simulated_driver::Installation;
use serde::de::DeserializeOwned;

use device::Gpu;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const USAGE: &str = "usage: gpu [background | kernels | launch-queue | count VARIANT CALLS]";

/// Set in a process that runs with the driver.
const CHILD: &str = "GPU_BENCH_ON_THE_DRIVER";
const BACKEND: &str = "PROFILER_BACKEND";

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    if env::var_os(CHILD).is_some() {
        if let Ok(name) = env::var(background::PROGRAM) {
            let _profiler = profiler_runtime::init()?;
            Gpu::set_up()?;
            return hand_over(&background::child(&name)?);
        }
        return hand_over(&child(&options)?);
    }
    match options.words()[..] {
        ["count", ..] => {
            // The ring has room for all calls, so that none waits for the resolver.
            let room =
                ["PROFILER_RING", "PROFILER_CUDA_EVENTS"].map(|variable| (variable, "65536"));
            return on_the_driver::<Vec<Table>>(&room).map(drop);
        }
        ["background"] => return background::measure(&options, on_the_driver),
        _ => {}
    }
    let mut report = Report::begin();
    let tables = match options.words()[..] {
        [] => {
            let mut tables: Vec<Table> = on_the_driver(&[(BACKEND, "auto")])?;
            tables.extend(on_the_driver::<Vec<Table>>(&[(BACKEND, "cpu")])?);
            tables
        }
        ["kernels"] => on_the_driver(&[])?,
        ["launch-queue"] => vec![launch_queue::measure()],
        _ => return Err(USAGE.into()),
    };
    for table in tables {
        report.show(table);
    }
    report.end(&options)
}

/// Runs this program again with the same arguments and a driver whose log is off: the log would slow down its calls as it
/// grows. Returns what that process hands over.
fn on_the_driver<T: DeserializeOwned>(environment: &[(&str, &str)]) -> Outcome<T> {
    let folder = env::temp_dir().join(format!("gpu-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let driver = Installation::new(&folder).create()?;
    let mut command = driver.command(env::current_exe()?, "log off");
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("PROFILER_") {
            command.env_remove(variable);
        }
    }
    command
        .args(env::args_os().skip(1))
        .env(CHILD, "1")
        .envs(environment.iter().copied());
    if !environment.contains(&(BACKEND, "cpu")) {
        // Scopes without a stream are measured on the legacy default stream, which is compared too.
        command
            .env("PROFILER_CUDA_STREAM", "legacy")
            .env("PROFILER_CUPTI_LIBRARY", folder.join("libcuda.so"));
    }
    let results = process::measured(&mut command);
    fs::remove_dir_all(&folder)?;
    results
}

/// Measures in this process.
fn child(options: &Options) -> Outcome<Vec<Table>> {
    let _profiler = profiler_runtime::init()?;
    Gpu::set_up()?;
    let on_gpu = env::var_os(BACKEND).is_none_or(|backend| backend != "cpu");
    match options.words()[..] {
        ["kernels"] => kernels::measure(),
        ["count", variant, calls] => variants::count(variant, calls.parse()?).map(|()| Vec::new()),
        _ => {
            let subjects = variants::all(on_gpu);
            variants::settle(&subjects);
            let mut tables = cost::placed(&subjects, on_gpu, options.rounds)?;
            if on_gpu {
                tables.push(cost::allocations_and_calls(&subjects)?);
                tables.push(sustained::measure());
            }
            Ok(tables)
        }
    }
}
