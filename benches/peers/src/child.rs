//! One process, which measures one peer, the bare function and two raw timestamps.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use bench_harness::memory::resident;
use bench_harness::{Options, Spread, Variant, measure};
use serde::{Deserialize, Serialize};

use crate::subjects::{BARE, FLOOR, PEERS};

/// Begins the line with the results: a peer may print lines of its own.
pub(crate) const MARK: &str = "measured: ";

/// The results of one process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) alone: Cost,
    pub(crate) on_all: Cost,
    /// The resident memory in MiB that one million calls added, or `None` if the system does not
    /// show it.
    pub(crate) mebibytes_kept: Option<f64>,
}

/// The nanoseconds that one call adds to the bare function.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) peer: Spread,
    pub(crate) floor: Spread,
}

pub(crate) fn run(name: &str, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let peer = PEERS.iter().find(|peer| peer.name == name);
    let peer = peer.ok_or_else(|| format!("there is no peer `{name}`"))?;
    let kept_alive = (peer.start)();
    (peer.variant.run)(WARMING);
    // Measured first: later runs leave queues behind, which would be drained during this
    // measurement.
    let mebibytes_kept = kept(&peer.variant);
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let cost = |threads| {
        let variants = [BARE, FLOOR, peer.variant];
        let samples = measure(&variants, threads, rounds, options.calls);
        Cost {
            floor: samples[1].added_to(&samples[0], 1),
            peer: samples[2].added_to(&samples[0], 1),
        }
    };
    let measured = Measured {
        alone: cost(1),
        on_all: cost(options.threads),
        mebibytes_kept,
    };
    println!("{MARK}{}", serde_json::to_string(&measured)?);
    std::io::stdout().flush()?;
    drop(kept_alive);
    Ok(())
}

/// The batches per variant, unless `--rounds` is given. A peer that keeps what it cannot process
/// would need gibibytes for ten times as many.
const ROUNDS: usize = 300;
const WARMING: u64 = 100_000;
const MILLIONS: u64 = 5;
/// The time that a peer has to drain its queues after the calls.
const WORKING_OFF: Duration = Duration::from_secs(2);

fn kept(variant: &Variant) -> Option<f64> {
    thread::sleep(WORKING_OFF);
    let before = resident()?;
    for _ in 0..MILLIONS {
        (variant.run)(1_000_000);
    }
    thread::sleep(WORKING_OFF);
    let grown = resident()?.cast_signed() - before.cast_signed();
    Some(grown as f64 / (1024.0 * 1024.0) / MILLIONS as f64)
}
