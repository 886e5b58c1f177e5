//! What one call with a GPU time costs the thread that makes it: beyond the two event records that it is
//! made of, in time, in memory and in calls of the driver; and from which rate on GPU times are lost.
//!
//! Runs itself again on a simulated driver with a real clock, as a program runs that has a GPU.

mod allocations;
mod calls;
mod cost;
mod gpu;
mod process;
mod processors;
mod report;
mod subjects;
mod sustained;
mod variants;

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
