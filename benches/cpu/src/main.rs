//! Measures what one measured call costs: in nanoseconds, as a multiple of two raw timestamps of the same run, in memory,
//! in stack and in instructions.

mod background;
mod count;
mod late;
#[path = "../../harness/measured.rs"]
mod measured;
mod memory;
mod sites;
mod subjects;
mod time;
mod variants;

use bench_harness::memory::CountingAllocator;
use bench_harness::{Options, Outcome, Report, Table};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const USAGE: &str = "usage: cpu [async-stack | background | service [built] | switch SITES TURNS | list | count VARIANT BATCHES]";

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    match options.words()[..] {
        [] => calls(&options),
        ["async-stack"] => {
            let mut report = Report::begin();
            let levels = async_stack::levels();
            report.show(Table::of_values("bytes of stack per level", levels));
            report.end(&options)
        }
        ["background"] => background::measure(&options),
        ["service"] => sites::service(&options, false),
        ["service", "built"] => sites::service(&options, true),
        ["switch", sites, turns] => sites::switch(&options, sites.parse()?, turns.parse()?),
        ["list"] => {
            count::list();
            Ok(())
        }
        ["count", variant, batches] => count::count(variant, batches.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// Measures the time and the memory of calls: on one thread, and on all cores at once.
fn calls(options: &Options) -> Outcome<()> {
    let _profiler = profiler_runtime::builder().filter("-filtered out").init()?;
    let mut report = Report::begin();
    bench_harness::settle(|| {
        measured::measured(0);
    });
    let variants = variants::timed();
    // Other work on the machine may make one run slow, but hardly three.
    let mut exceeded = Vec::new();
    for _ in 0..3 {
        let (table, these) = time::measure(&variants, 1, options);
        report.show(table);
        exceeded = these;
        if exceeded.is_empty() {
            break;
        }
    }
    if options.threads > 1 {
        report.show(time::measure(&variants, options.threads, options).0);
    }
    report.show(memory::of_a_million(&variants));
    report.show(memory::of_a_long_run(&variants));
    report.end(options)?;
    if exceeded.is_empty() {
        return Ok(());
    }
    Err(format!(
        "above the bound in three runs, in the last by: {}",
        exceeded.join(", ")
    )
    .into())
}
