//! The instructions of one call, counted by callgrind in processes of their own.

use std::process::Command;

use bench_harness::{Outcome, counted_calls};

use crate::child;
use crate::subjects::BARE;

/// The environment variable with the number of calls, of which a process then makes as many, and measures nothing.
pub(crate) const COUNT: &str = "PEERS_COUNT";

/// The name of the bare function.
pub(crate) const NONE: &str = "bare";

const CALLS: u64 = 20_000;
const WARMING: u64 = 2_000;

/// Makes the calls under callgrind.
pub(crate) fn run(name: &str, calls: &str) -> Outcome<()> {
    let calls = calls.parse()?;
    if name == NONE {
        counted_calls(BARE.hot.run, calls);
        return Ok(());
    }
    let peer = child::find(name)?;
    let kept_alive = (peer.start)();
    (peer.subject.hot.run)(WARMING);
    counted_calls(peer.subject.hot.run, calls);
    drop(kept_alive);
    Ok(())
}

/// Returns how many instructions a call takes, or `None` without valgrind: the difference between N and 2N calls, so that
/// one-time work cancels out.
pub(crate) fn per_call(name: &str, environment: &str) -> Outcome<Option<f64>> {
    let mut counts = [0; 2];
    for (count, calls) in counts.iter_mut().zip([CALLS, 2 * CALLS]) {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=*counted_calls*")
            .arg(std::env::current_exe()?)
            .env(environment, name)
            .env(COUNT, calls.to_string())
            .env("PROFILER_BACKEND", "cpu")
            .output();
        let Ok(output) = output else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&output.stderr);
        let collected = text.lines().find_map(|line| line.split_once("Collected :"));
        let Some((_, collected)) = collected.filter(|_| output.status.success()) else {
            return Err(format!("{name}: valgrind ended with {}: {text}", output.status).into());
        };
        *count = collected.trim().parse::<u64>()?;
    }
    let [once, twice] = counts;
    Ok(Some((twice as f64 - once as f64) / CALLS as f64))
}
