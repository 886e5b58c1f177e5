//! One round: threads start, work and end. A session records every other round.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_runtime::session::ProfileError;
use profiler_runtime::{Profile, flush};

use crate::account::Account;
use crate::gpu::Gpu;
use crate::work::{Futures, Worker};

const THREADS: u64 = 4;

/// The operations of each thread per round.
const PIECES: u64 = 4_000;

/// Runs a round to its end: no scope is open before or after it.
pub(crate) fn run(round: u64, gpu: &Gpu, account: &Account) -> Result<(), String> {
    let records = round % 2 == 1;
    if records {
        recorded(round, gpu, account)
    } else {
        work(round, gpu, account, Futures::Measured)
    }
}

/// Runs a round that a session records, in one window. Such rounds have no futures, because a
/// window contains their polls too, which this program does not count.
fn recorded(round: u64, gpu: &Gpu, account: &Account) -> Result<(), String> {
    let before = account.total();
    let profile = Profile::builder()
        .start()
        .map_err(|error: ProfileError| error.to_string())?;
    work(round, gpu, account, Futures::LeftOut)?;
    // A thread that was joined has handed over its scopes.
    profile.stop();
    if !profile.wait(Duration::from_secs(60)) {
        return Err(format!("the window of round {round} is not complete"));
    }
    let trace = profile.trace().ok_or("the session has no window")?;
    account.add_window(&trace);
    account.add_recorded(account.total() - before);
    Ok(())
}

fn work(round: u64, gpu: &Gpu, account: &Account, futures: Futures) -> Result<(), String> {
    let failed = Arc::new(AtomicU64::new(0));
    std::thread::scope(|threads| {
        let handles: Vec<_> = (0..THREADS)
            .map(|thread| {
                let failed = Arc::clone(&failed);
                threads.spawn(move || {
                    let seed = round * THREADS + thread + 1;
                    let worked = Worker::new(seed, gpu, account, futures)
                        .and_then(|mut worker| worker.run(PIECES));
                    if let Err(message) = worked {
                        eprintln!("{message}");
                        failed.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        for handle in handles {
            if handle.join().is_err() {
                failed.fetch_add(1, Relaxed);
            }
        }
    });
    if round.is_multiple_of(10) {
        // The result is compared at the end.
        let _ = flush(Duration::from_secs(10));
    }
    match failed.load(Relaxed) {
        0 => Ok(()),
        count => Err(format!("{count} threads failed in round {round}")),
    }
}
