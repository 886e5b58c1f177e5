//! Measures what a call with a GPU time costs its thread beyond its two event records, in time,
//! memory and driver calls, and from which call rate on GPU times are lost.
//!
//! Runs itself again with a simulated driver with a real clock, like a program with a GPU.

mod allocations;
mod calls;
mod cost;
mod gpu;
mod kernels;
mod launch_queue;
mod process;
mod processors;
mod report;
mod subjects;
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

use std::process::ExitCode;

use bench_harness::memory::CountingAllocator;
use bench_harness::{Machine, Options};

use process::{Backend, Outcome};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> Outcome<ExitCode> {
    let options = Options::from_command_line()?;
    if let [word, variant, calls] = &options.rest[..]
        && word == "count"
    {
        return process::count(variant, calls.parse()?);
    }
    if options.rest == ["kernels"] {
        return process::kernels();
    }
    if options.rest == ["launch-queue"] {
        println!("{}\n", Machine::this());
        launch_queue::measure();
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(backend) = process::backend() {
        process::measure(backend, &options)?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = Machine::this();
    println!("{machine}\n");
    let report = report::Report {
        machine,
        cuda: process::run(Backend::Auto)?,
        cpu: process::run(Backend::Cpu)?,
    };
    println!("{report}");
    options.write_json(&report)?;
    Ok(ExitCode::SUCCESS)
}
