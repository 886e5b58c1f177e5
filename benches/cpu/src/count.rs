//! Calls one function repeatedly, so that callgrind can count its instructions; see `instructions.sh`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bench_harness::{Outcome, counted_calls};
use profiler_runtime::Profile;

use crate::subjects::{ARRIVED, KNOWN};
use crate::variants::{LOGGED, RECORDED, arrive, counted};

/// The calls of a batch. As many as a variant has names at most, so that each batch calls all of them equally often.
const BATCH: u64 = 1000;

/// Prints each variant, its base, and the measured calls in one call of it.
pub(crate) fn list() {
    for variant in counted() {
        println!("{} {} {}", variant.name, variant.base, variant.measured);
    }
}

/// Makes the calls of one variant that callgrind counts, after others: the first call of a name initializes the clock, the name
/// and the thread's cell.
pub(crate) fn count(name: &str, batches: u64) -> Outcome<()> {
    /// Enough for the times of a name to have reached most of their range.
    const OF_EACH_NAME: u64 = 300;
    let variant = counted().into_iter().find(|variant| variant.name == name);
    let variant = variant.ok_or_else(|| format!("there is no variant `{name}`; see `cpu list`"))?;
    let _profiler = profiler_runtime::builder().filter("-filtered out").init()?;
    (variant.run)(BATCH);
    (variant.before)();
    for _ in 0..OF_EACH_NAME * KNOWN.load(Relaxed) as u64 / BATCH {
        (variant.run)(BATCH);
    }
    let session = (name == RECORDED).then(|| Profile::builder().start());
    let session = session.transpose()?;
    arrive();
    let earlier = [in_summary(), ARRIVED.load(Relaxed)];
    for _ in 0..batches {
        counted_calls(variant.run, BATCH);
    }
    (variant.after)();
    let made = batches * BATCH * u64::from(variant.measured);
    let is_measured = !name.starts_with("off") && name != "filtered-out";
    let expected = if is_measured { made } else { 0 };
    expect("calls in the summary", in_summary() - earlier[0], expected)?;
    if name == LOGGED {
        arrive();
        expect("log entries", ARRIVED.load(Relaxed) - earlier[1], made)?;
    }
    if let Some(session) = session {
        session.stop();
        let is_there = session.wait(Duration::from_secs(10));
        let window = is_there.then(|| session.trace()).flatten();
        let recorded = window.map_or(0, |window| window.len() as u64);
        expect("calls in the window", recorded, made)?;
    }
    Ok(())
}

fn in_summary() -> u64 {
    let rows = profiler_runtime::summary().rows;
    rows.iter().map(|row| row.calls).sum()
}

/// Otherwise, the instructions are those of something else.
fn expect(what: &str, counted: u64, expected: u64) -> Outcome<()> {
    if counted == expected {
        return Ok(());
    }
    Err(format!("{counted} {what} instead of {expected}: set a larger PROFILER_RING").into())
}
