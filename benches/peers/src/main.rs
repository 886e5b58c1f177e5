//! Compares what one measured call costs with other profilers: the same body and the same loop,
//! each peer in separate processes, since the threads of one peer would slow down the next.

mod child;
mod instructions;
#[path = "../../harness/measured.rs"]
#[allow(dead_code, reason = "the file is included whole")]
mod measured;
mod subjects;

use bench_harness::process::{self, again};
use bench_harness::{Cell, Options, Outcome, Report, Table, median};

use child::FIGURES;
use subjects::PEERS;

/// The processes per peer. Their median excludes outliers.
const PROCESSES: usize = 3;

/// The environment variable that tells a process which peer to measure.
const CHILD: &str = "PEERS_MEASURE";

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    if let Ok(name) = std::env::var(CHILD) {
        return match std::env::var(instructions::COUNT) {
            Ok(calls) => instructions::run(&name, &calls),
            Err(_) => child::run(&name, &options),
        };
    }
    let mut report = Report::begin();
    // Of each peer, the figures of its processes.
    let mut results = PEERS.each_ref().map(|_| Vec::new());
    for _ in 0..PROCESSES {
        for (peer, results) in PEERS.iter().zip(&mut results) {
            // Else calls take a slower path for a second or two, while the profiler looks for a driver.
            let mut command = again()?;
            command.env(CHILD, peer.name).env("PROFILER_BACKEND", "cpu");
            results.push(process::measured::<Vec<Option<f64>>>(&mut command)?);
        }
    }
    let title = format!(
        "added to one call; x: the ratio to two rdtsc, of the same process; all: {} threads at once",
        options.threads
    );
    let mut table = Table::new(title, &format!("peer | {FIGURES} | instructions"));
    let bare = instructions::per_call(instructions::NONE, CHILD)?;
    for (peer, processes) in PEERS.iter().zip(&results) {
        let figure = |at: usize| {
            let figures: Option<Vec<f64>> = processes.iter().map(|one| one[at]).collect();
            figures.map(|figures| median(&figures))
        };
        let with = instructions::per_call(peer.name, CHILD)?;
        let beyond = with.zip(bare).map(|(with, bare)| with - bare);
        let figures = (0..processes[0].len()).map(figure).chain([beyond]);
        let name = Cell::from(peer.name);
        table.push([name].into_iter().chain(figures.map(Cell::from)).collect());
    }
    report.show(table);
    report.end(&options)
}
