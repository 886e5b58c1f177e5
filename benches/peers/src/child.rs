//! One process, which measures one peer, the bare function and two bare readings of the time-stamp counter.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use bench_harness::memory::resident;
use bench_harness::{Options, Spread, measure, measure_paced};
use serde::{Deserialize, Serialize};

use crate::subjects::{BARE, FLOOR, PEERS, Peer};

/// Begins the line with the results: a peer may print lines of its own.
pub(crate) const MARK: &str = "measured: ";

/// The results of one process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) hot: Cost,
    pub(crate) on_all: Cost,
    pub(crate) paced: Cost,
    pub(crate) hot_kept: Kept,
    pub(crate) paced_kept: Kept,
}

/// The nanoseconds that one call adds to the bare function.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) peer: Spread,
    pub(crate) floor: Spread,
}

/// The resident memory in MiB that one million calls added, or `None` if the system does not show it.
type Kept = Option<f64>;

pub(crate) fn find(name: &str) -> Result<&'static Peer, String> {
    let peer = PEERS.iter().find(|peer| peer.name == name);
    peer.ok_or_else(|| format!("there is no peer `{name}`"))
}

pub(crate) fn run(name: &str, options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let peer = find(name)?;
    let kept_alive = (peer.start)();
    (peer.subject.hot.run)(WARMING);
    (peer.subject.paced.run)(PACED_BATCH);
    thread::sleep(WORKING_OFF);
    if !(peer.is_as_stated)() {
        return Err("the peer has recorded calls, or none, against what its row says".into());
    }
    // Measured first: later runs leave queues behind, which would be drained during this measurement.
    let paced_kept = kept(PACED_CALLS, || {
        for _ in 0..PACED_CALLS / PACED_BATCH {
            (peer.subject.paced.run)(PACED_BATCH);
        }
    });
    let hot_kept = kept(HOT_CALLS, || (peer.subject.hot.run)(HOT_CALLS));
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let measured = Measured {
        hot: hot(peer, 1, rounds, options.calls),
        on_all: hot(peer, options.threads, rounds.div_ceil(8), options.calls),
        paced: paced(peer, rounds.div_ceil(2)),
        hot_kept,
        paced_kept,
    };
    println!("{MARK}{}", serde_json::to_string(&measured)?);
    std::io::stdout().flush()?;
    drop(kept_alive);
    Ok(())
}

/// The short batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 2000;
const WARMING: u64 = 10_000;
const HOT_CALLS: u64 = 1_000_000;
const PACED_CALLS: u64 = 200_000;
/// A few hundred microseconds.
const PACED_BATCH: u64 = 100;
/// The time that a peer has to drain its queues after the calls.
const WORKING_OFF: Duration = Duration::from_secs(1);

fn hot(peer: &Peer, threads: usize, rounds: usize, calls: u64) -> Cost {
    let variants = [BARE, FLOOR, peer.subject].map(|subject| subject.hot);
    let samples = measure(&variants, threads, rounds, calls);
    Cost {
        floor: samples[1].added_to(&samples[0], 1),
        peer: samples[2].added_to(&samples[0], 1),
    }
}

fn paced(peer: &Peer, rounds: usize) -> Cost {
    let variants = [BARE, FLOOR, peer.subject].map(|subject| subject.paced);
    let samples = measure_paced(&variants, rounds, PACED_BATCH);
    Cost {
        floor: samples[1].added_to(&samples[0], 1),
        peer: samples[2].added_to(&samples[0], 1),
    }
}

fn kept(calls: u64, run: impl FnOnce()) -> Kept {
    let before = resident()?;
    run();
    thread::sleep(WORKING_OFF);
    let grown = resident()?.cast_signed() - before.cast_signed();
    Some(grown as f64 / (1024.0 * 1024.0) / (calls as f64 / 1e6))
}
