//! Measures what one measured call costs: in nanoseconds, as a multiple of two raw timestamps of
//! the same run, and in memory; on one thread, and on all cores at once.

mod late;
mod memory;
mod report;
mod subjects;
mod variants;

use std::thread::sleep;
use std::time::{Duration, Instant};

use bench_harness::memory::CountingAllocator;
use bench_harness::{Machine, Options, measure};
use serde::Serialize;

use report::Run;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    runs: Vec<Run>,
    memory: memory::Report,
}

/// In a process without CUDA, measured calls take a slower path for a second or two, during which
/// they search for a driver. The bench measures after that.
const LOOKING_FOR_A_DRIVER: Duration = Duration::from_secs(3);

fn wait_until_driver_search_ends() {
    let began = Instant::now();
    while began.elapsed() < LOOKING_FOR_A_DRIVER {
        subjects::plain(0);
        sleep(Duration::from_millis(1));
    }
}

/// The batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 5000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_command_line()?;
    let _profiler = profiler_runtime::builder().filter("-filtered out").init()?;
    let machine = Machine::this();
    println!("{machine}\n");
    wait_until_driver_search_ends();
    let subjects = variants::all();
    let variants: Vec<_> = subjects.iter().map(|subject| subject.variant).collect();
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let mut runs = Vec::new();
    let mut counts = vec![1, options.threads];
    counts.dedup();
    for threads in counts {
        let samples = measure(&variants, threads, rounds, options.calls);
        let run = Run::new(threads, &subjects, &samples);
        println!("{run}");
        runs.push(run);
    }
    report::print_bounds(&runs);
    let memory = memory::Report::measure(&subjects);
    println!("{memory}");
    options.write_json(&Report {
        machine,
        runs,
        memory,
    })?;
    Ok(())
}
