//! Sampling the running statistics for the history.
//!
//! A background thread takes the samples. Measured threads do nothing for them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::sync::Lock;
use profiler_report::{HistoryPoint, Row, Times};

use super::series::{History, Sums};
use crate::clock::clock;
use crate::name::{self, Name};

/// The most rows of a summary that have a history: those with the largest shares of the time.
const MAX_ROWS: usize = 128;
/// A sample is followed by a rest this many times as long as taking it took.
const REST: u64 = 100;

static HISTORY: Lock<History> = Lock::with(History::new(), History::new);
/// The end of the rest, in nanoseconds since the beginning. Only the sampling thread uses it. The length of the spans
/// stays: a single slow sample, of a process that was suspended, would make all later ones long.
static REST_UNTIL: AtomicU64 = AtomicU64::new(0);

fn now_ns() -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, after centuries"
    )]
    let now = clock().nanoseconds(clock().since_origin() as f64) as u64;
    now
}

/// Takes a sample if it is due. Returns how long it is until the next one.
pub(crate) fn sample() -> Duration {
    let mut history = HISTORY.lock();
    let now = now_ns();
    if now >= next(&history) {
        history.end_span(now, name::all().into_iter().map(sums));
        let end = now_ns();
        let rest = end.saturating_sub(now).saturating_mul(REST);
        REST_UNTIL.store(end.saturating_add(rest), Relaxed);
    }
    Duration::from_nanos(next(&history).saturating_sub(now_ns()))
}

/// Returns when the next sample is due.
fn next(history: &History) -> u64 {
    history.next_end().max(REST_UNTIL.load(Relaxed))
}

/// Returns the number of a name and what was measured under it so far.
fn sums(name: &'static Name) -> (u32, Sums) {
    let totals = name.totals();
    let mut sums = Sums {
        calls: totals.calls(),
        cpu_self_ns: clock().nanoseconds(totals.own as f64).max(0.0),
        ..Sums::default()
    };
    if let Some(cuda) = name.cuda.read() {
        sums.cuda_calls = cuda.calls;
        sums.cuda_self_ns = cuda.own.max(0.0);
    }
    (name.id, sums)
}

/// The history at the moment when a summary began to read the statistics.
pub(crate) struct Snapshot(History);

/// Copies the history. Called before the rows are read, so that the rows have everything that the history has.
pub(crate) fn snapshot() -> Snapshot {
    Snapshot(HISTORY.lock().clone())
}

impl Snapshot {
    /// Writes the histories of the rows with the largest shares. `numbers` are those of the rows' names.
    pub(crate) fn fill(&self, rows: &mut [Row], numbers: &[u32]) {
        let now = now_ns();
        let mut by_share: Vec<_> = rows.iter_mut().zip(numbers).collect();
        by_share.sort_by(|(one, _), (other, _)| share(other).total_cmp(&share(one)));
        for (row, number) in by_share.into_iter().take(MAX_ROWS) {
            row.history = self.of(*number, now, row);
        }
    }

    fn of(&self, number: u32, now: u64, row: &Row) -> Vec<HistoryPoint> {
        let cuda = row.cuda.unwrap_or_default();
        let sums = Sums {
            calls: row.calls,
            cpu_self_ns: row.cpu.map_or(0.0, |cpu| cpu.self_ns),
            cuda_calls: cuda.calls,
            cuda_self_ns: cuda.self_ns.max(0.0),
        };
        self.0.of(number, now, sums)
    }
}

/// Returns the larger of the two shares of a row, on the CPU and on the GPU.
fn share(row: &Row) -> f64 {
    let share = |times: Option<Times>| times.map_or(0.0, |times| times.self_percent);
    share(row.cpu).max(share(row.cuda))
}
