//! Which call sites are those of futures: their spans are measured as a whole.
//!
//! A span that is entered again may belong to a future, which enters it in each poll, or to an object that is called again
//! and again, such as a layer of candle. `tracing` tells neither, but `Instrument` and `#[instrument]` enter the span of a
//! future once more when they drop the future, which then closes the span: the last time of such a span is the shortest of
//! all, has nothing inside, and the span is closed right after it, on the same thread. A span that was seen to end so makes
//! its call site that of futures.
//!
//! A future that does less in its polls than it takes to drop it is not found out, nor one that is dropped elsewhere than
//! it is polled last, until one of the same call site is. Each time that they are entered is a call then.

use std::cell::Cell;
use std::time::Duration;

use super::held::HeldTime;
use super::sites::SpanSite;
use crate::clock::{clock, elapsed, now};
use crate::name;

/// How much shorter than most times the last one is, until the span is closed.
const SHORTER: f64 = 4.0;
/// The quantile that stands for most times: at least half of them are polls, however often a future is polled, and a time in
/// which the thread did not run does not change it, as it would change the mean.
const MOST: f64 = 0.75;

/// The longest last time of a span whose times were held back. They are few, and the first may have been longer for other reasons.
const DROP: Duration = Duration::from_micros(20);

/// The spans of a name that are judged on each thread: to look at all times of a name takes long.
const JUDGED: u64 = 64;

thread_local! {
    /// The span that this thread exited last, of those that had been exited before, and when it had entered it, in ticks.
    static EXITED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Notes that a thread exits a span that had been exited before.
#[cold]
pub(super) fn note_again(id: u64, entered: u64) {
    let _ = EXITED.try_with(|exited| exited.set((id, entered)));
}

/// Returns `true` if a span whose times were held back, and which is closed on this thread, was that of a future.
#[cold]
pub(super) fn is_of_future(id: u64, times: &[HeldTime]) -> bool {
    let closed = now();
    let Ok((exited, entered)) = EXITED.try_with(Cell::take) else {
        return false;
    };
    // The last time is the drop.
    let Some((_, polls)) = times.split_last() else {
        return false;
    };
    let mut polls: Vec<i64> = polls.iter().map(|time| time.part.elapsed).collect();
    polls.sort_unstable();
    let last = elapsed(entered, closed);
    let is_drop = exited == id && last < clock().in_ticks(DROP).cast_signed();
    let most = polls.get(polls.len() / 2);
    is_drop && most.is_some_and(|most| SHORTER * (last as f64) < *most as f64)
}

/// Judges the call site of a span that is closed on this thread, and was exited several times. `so_far` counts such spans of
/// the name on this thread.
#[cold]
pub(super) fn judge(id: u64, site: &SpanSite, so_far: u64) {
    let closed = now();
    let Ok((exited, entered)) = EXITED.try_with(Cell::take) else {
        return;
    };
    if so_far > JUDGED {
        return;
    }
    let name = site
        .last_decision()
        .and_then(|decision| name::by_id(decision.id()));
    let Some(name) = name.filter(|_| exited == id) else {
        return;
    };
    let most = name.quantile(MOST);
    if most.is_some_and(|most| SHORTER * (elapsed(entered, closed) as f64) < most) {
        site.set_whole();
    }
}
