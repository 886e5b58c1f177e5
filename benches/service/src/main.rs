//! Measures the memory of a large service's statistics and the time of its summary: 5,000 names, each called on 128
//! threads that stay alive, with times over a few powers of two.

mod names;

use std::fmt;
use std::sync::Barrier;
use std::thread;

use bench_harness::memory::resident;
use bench_harness::{Machine, Options, median};
use serde::Serialize;

const THREADS: usize = 128;
/// The calls of each function on each thread.
const CALLS: u32 = 50;
const MIB: f64 = 1024.0 * 1024.0;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    names: usize,
    threads: usize,
    /// The growth of the resident memory, in bytes.
    resident_bytes: Option<u64>,
    /// The mean time of a further call, with its work, in nanoseconds of one thread.
    call_ns: f64,
    /// The processor times of `summary()` in milliseconds, in the order of the calls.
    summary_ms: Vec<f64>,
    /// The lines of the summary about shared statistics.
    notes: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, threads, .. } = self;
        writeln!(f, "{names} names on {threads} threads, {CALLS} calls each")?;
        if let Some(bytes) = self.resident_bytes {
            let each = bytes as f64 / (names * threads) as f64;
            let mib = bytes as f64 / MIB;
            writeln!(
                f,
                "resident memory: {mib:.0} MiB more, {each:.0} bytes for each name and thread"
            )?;
        }
        writeln!(f, "a further call, with its work: {:.0} ns", self.call_ns)?;
        let times: Vec<String> = self
            .summary_ms
            .iter()
            .map(|ms| format!("{ms:.0}"))
            .collect();
        let middle = median(&self.summary_ms);
        writeln!(
            f,
            "summary(): {} ms of the processor; median {middle:.0} ms",
            times.join(" ")
        )?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

/// Returns the work of the calls of one round: 32 to 256 steps, and once more.
fn length(round: u32) -> u32 {
    if round == 7 { 4096 } else { 32 << (round % 4) }
}

fn measure(machine: Machine, rounds: usize) -> Report {
    let names = names::all();
    let (called, read) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    // The profiler's threads and the first name are no part of what is measured.
    names::call_all(&names[..1], 1);
    let ready = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                ready.wait();
                for round in 0..CALLS {
                    names::call_all(&names, length(round));
                }
                called.wait();
                read.wait();
            });
        }
        let before = resident();
        ready.wait();
        called.wait();
        let resident_bytes = resident()
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before));
        let summary_ms = (0..rounds).map(|_| summary_ms()).collect();
        let started = processor_time();
        let further = 20;
        for round in 0..further {
            names::call_all(&names, length(round));
        }
        let calls = f64::from(further) * names.len() as f64;
        let call_ns = (processor_time() - started) * 1e9 / calls;
        let notes = notes();
        read.wait();
        Report {
            machine,
            names: names.len(),
            threads: THREADS,
            resident_bytes,
            call_ns,
            summary_ms,
            notes,
        }
    })
}

fn summary_ms() -> f64 {
    let started = processor_time();
    let summary = profiler_runtime::summary();
    let took = processor_time() - started;
    drop(summary);
    took * 1e3
}

/// Returns the seconds that this thread has run on a processor. On a busy machine, elapsed time says nothing.
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the lines below the summary's table that are about cells.
fn notes() -> Vec<String> {
    let table = profiler_runtime::summary().to_string();
    let about_cells = |line: &&str| line.contains("PROFILER_CELL_MEMORY");
    table
        .lines()
        .filter(about_cells)
        .map(str::to_owned)
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_command_line()?;
    let machine = Machine::this();
    println!("{machine}\n");
    let report = measure(machine, options.rounds.unwrap_or(7));
    println!("{report}");
    options.write_json(&report)?;
    Ok(())
}
