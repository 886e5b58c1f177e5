//! Compares what one measured call costs with other profilers: the same body and the same loop,
//! each peer in separate processes, since the threads of one peer would slow down the next.

mod child;
mod instructions;
mod report;
mod subjects;

use std::process::{Command, Stdio};

use bench_harness::{Machine, Options};
use serde::Serialize;

use child::Measured;
use report::Row;
use subjects::PEERS;

/// The processes per peer. Their median excludes outliers.
const PROCESSES: usize = 3;

/// The environment variable that tells a process which peer to measure.
const CHILD: &str = "PEERS_MEASURE";

#[derive(Serialize)]
struct Report {
    machine: Machine,
    threads: usize,
    rows: Vec<Row>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_command_line()?;
    if let Ok(name) = std::env::var(CHILD) {
        return match std::env::var(instructions::COUNT) {
            Ok(calls) => instructions::run(&name, &calls),
            Err(_) => child::run(&name, &options),
        };
    }
    let machine = Machine::this();
    println!("{machine}\n");
    let mut results: Vec<Vec<Measured>> = PEERS.iter().map(|_| Vec::new()).collect();
    for _ in 0..PROCESSES {
        for (peer, results) in PEERS.iter().zip(&mut results) {
            results.push(in_process(peer.name)?);
        }
    }
    let bare = instructions::per_call(instructions::NONE, CHILD)?;
    let mut rows = Vec::new();
    for (peer, all) in PEERS.iter().zip(&results) {
        let with = instructions::per_call(peer.name, CHILD)?;
        let beyond = with.zip(bare).map(|(with, bare)| with - bare);
        rows.push(Row::new(peer.name, all, beyond));
    }
    println!("{}", report::table(options.threads, &rows));
    let (hot, paced) = report::floor(&rows);
    println!("two rdtsc add {hot:.1} ns in the hot loop and {paced:.1} ns paced (2nd percentiles)");
    options.write_json(&Report {
        machine,
        threads: options.threads,
        rows,
    })?;
    Ok(())
}

/// Measures one peer in a process, with the options of this one.
fn in_process(name: &str) -> Result<Measured, Box<dyn std::error::Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(std::env::args().skip(1))
        .env(CHILD, name)
        // Else calls take a slower path for a second or two, while the profiler looks for a driver.
        .env("PROFILER_BACKEND", "cpu")
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(child::MARK));
    let Some(line) = line.filter(|_| output.status.success()) else {
        return Err(format!("{name}: its process ended with {}: {text}", output.status).into());
    };
    Ok(serde_json::from_str(line)?)
}
