//! One process, which measures one peer, the bare function and two bare readings of the time-stamp counter.

use std::thread;
use std::time::Duration;

use bench_harness::memory::resident;
use bench_harness::process::hand_over;
use bench_harness::{Options, Outcome, Samples, measure, measure_paced};

use crate::subjects::{BARE, FLOOR, PEERS, Peer};

/// What a process measures, with the decimal places that are shown: the nanoseconds that a call adds to the bare function, by
/// the 2nd percentile, and those of two readings; the ratio of both, by 2nd percentiles and by medians; and the MiB of
/// resident memory that a million calls add.
pub(crate) const FIGURES: &str = "hot: ns .1 | two rdtsc .1 | x 2nd pct .2 | x median .2 | all: x median .2 \
    | paced: ns .1 | two rdtsc .1 | x 2nd pct .2 | x median .2 | MiB kept per 10^6 calls, hot .1 | paced .1";

/// The short batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 2000;
const WARMING: u64 = 10_000;
const HOT_CALLS: u64 = 1_000_000;
const PACED_CALLS: u64 = 200_000;
/// A few hundred microseconds.
const PACED_BATCH: u64 = 100;
/// The time that a peer has to drain its queues after the calls.
const WORKING_OFF: Duration = Duration::from_secs(1);

pub(crate) fn find(name: &str) -> Result<&'static Peer, String> {
    let peer = PEERS.iter().find(|peer| peer.name == name);
    peer.ok_or_else(|| format!("there is no peer `{name}`"))
}

pub(crate) fn run(name: &str, options: &Options) -> Outcome<()> {
    let peer = find(name)?;
    let kept_alive = (peer.start)();
    (peer.subject.hot.run)(WARMING);
    (peer.subject.paced)(PACED_BATCH);
    thread::sleep(WORKING_OFF);
    if !(peer.is_as_stated)() {
        return Err("the peer has recorded calls, or none, against what its row says".into());
    }
    // Measured first: later runs leave queues behind, which would be drained during this measurement.
    let paced_kept = kept(PACED_CALLS, || {
        for _ in 0..PACED_CALLS / PACED_BATCH {
            (peer.subject.paced)(PACED_BATCH);
        }
    });
    let hot_kept = kept(HOT_CALLS, || (peer.subject.hot.run)(HOT_CALLS));
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let subjects = [BARE, FLOOR, peer.subject];
    let hot = subjects.map(|subject| subject.hot);
    let on_one = measure(&hot, 1, rounds, options.calls);
    let on_all = measure(&hot, options.threads, rounds.div_ceil(8), options.calls);
    let paced = subjects.map(|subject| subject.paced);
    let paced = measure_paced(&paced, rounds.div_ceil(2), PACED_BATCH);
    let [_, _, _, median_on_all] = added(&on_all);
    let figures = added(&on_one).into_iter().chain([median_on_all]);
    let figures = figures.chain(added(&paced)).map(Some);
    hand_over(&figures.chain([hot_kept, paced_kept]).collect::<Vec<_>>())?;
    drop(kept_alive);
    Ok(())
}

/// Returns what the peer and two readings add, and the ratios of 2nd percentiles and medians. Both are of one process, so that
/// both have the same noise.
fn added(samples: &[Samples]) -> [f64; 4] {
    let [floor, peer] = [1, 2].map(|at: usize| samples[at].added_to(&samples[0], 1));
    let [low, median, _] = peer.over(&floor);
    [peer.low, floor.low, low, median]
}

/// The MiB that a million calls have added, or `None` if the system does not show it.
fn kept(calls: u64, run: impl FnOnce()) -> Option<f64> {
    let before = resident()?;
    run();
    thread::sleep(WORKING_OFF);
    let grown = resident()?.cast_signed() - before.cast_signed();
    Some(grown as f64 / (1024.0 * 1024.0) / (calls as f64 / 1e6))
}
