//! The thread that works on the summary while the program runs: it samples the history of the rows, and rewrites the
//! file of the summary if there is an interval.
//!
//! # Protocol
//!
//! The last summary is written by another thread, in [`exit_summary::write`](super::exit_summary::write). [`stop`] keeps
//! this one from replacing it by an earlier one, and from being ended by the exit of the process in the middle of a write, which would leave a
//! temporary file.
//!
//! | thread | stores | then loads |
//! |---|---|---|
//! | this one, before a write | `IS_WRITING` = true | `IS_ON`: writes only if it is true |
//! | that of `stop` | `IS_ON` = false | `IS_WRITING`: waits while it is true |
//!
//! These four accesses are sequentially consistent, so that at least one of the two threads sees the store of the other:
//! either nothing is written, or `stop` waits. The wait is bounded, because the file may be on a disk that does not
//! answer.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use profiler_host::background::Background;
use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_host::process::output::new_file;
use profiler_host::process::platform::Instant;

use super::summary_target;
use crate::config::SummaryTarget;
use crate::own_cost;
use crate::snapshot;
use crate::switch::{NEVER_MEASURES, with_control};

static THREAD: Background = Background::new("profiler-summary", run, || {});
/// `true` while there is anything to do.
static IS_ON: AtomicBool = AtomicBool::new(false);
static IS_WRITING: AtomicBool = AtomicBool::new(false);

/// After a write, the thread rests for at least this many times as long as the write took.
const REST: u32 = 19;

/// Starts the thread if the settings give it anything to do. Called each time that they may have changed, with no lock
/// held: warnings may reach user code.
pub(super) fn begin() {
    let (target, interval) = settings();
    let is_rewritten = interval.is_some() && can_be_rewritten(&target);
    if interval.is_some() && !is_rewritten && target != SummaryTarget::Off {
        let (interval, summary) = with_control(|control| {
            let settings = &control.settings;
            (
                settings.origin("PROFILER_SUMMARY_INTERVAL", "`Builder::summary_interval`"),
                settings.origin("PROFILER_SUMMARY", "`Builder::summary`"),
            )
        });
        diagnostics::warn_once(&format!(
            "{interval}: the summary goes to {target}, where each one would follow the one before, so it is written at the end \
             only; set {summary} to a file, and look at it with `profiler top FILE` (`.json`) or `watch cat FILE`"
        ));
    }
    // Without threads, as on WASI, there is no history.
    let has_history = target.has_history() && !cfg!(target_family = "wasm");
    if NEVER_MEASURES || !fork::is_own_process() || !(is_rewritten || has_history) {
        return;
    }
    // Under the lock that a round takes: a round that has missed the wake-up sees it, or the wake-up comes after.
    with_control(|_| IS_ON.store(true, SeqCst));
    if THREAD.ensure_started("the summary is written at the end only, and its rows have no history")
    {
        THREAD.wake();
    }
}

/// Keeps the thread from doing anything until the next [`begin`]. Waits until the write in progress has ended, at most
/// for `timeout`.
pub(super) fn stop(timeout: Duration) {
    IS_ON.store(false, SeqCst);
    let start = Instant::now();
    while IS_WRITING.load(SeqCst) && start.elapsed() < timeout {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the target of the summary and how often it is rewritten.
fn settings() -> (SummaryTarget, Option<Duration>) {
    with_control(|control| {
        let settings = &control.settings;
        (settings.summary.clone(), settings.summary_interval)
    })
}

/// Returns `true` for a file that is replaced when it is written.
fn can_be_rewritten(target: &SummaryTarget) -> bool {
    matches!(target, SummaryTarget::File(path) if new_file::is_replaced(path))
}

fn run() {
    let mut writer = Writer::default();
    loop {
        THREAD.clear_wakeup();
        let pause = writer.round();
        own_cost::note_background();
        match pause {
            Some(pause) => thread::park_timeout(pause),
            None => thread::park(),
        }
    }
}

/// The state of the thread.
#[derive(Default)]
struct Writer {
    /// When the file is written next; `None` before the first round with an interval.
    next: Option<Instant>,
    /// The interval that `next` was set for.
    interval: Option<Duration>,
}

impl Writer {
    /// Does what is due. Returns how long to sleep, or `None` while there is nothing to do.
    fn round(&mut self) -> Option<Duration> {
        let (target, interval) = settings();
        if !IS_ON.load(SeqCst) {
            self.next = None;
            return None;
        }
        let until_sample = snapshot::sample();
        let Some(interval) = interval else {
            return Some(until_sample);
        };
        if self.interval.replace(interval) != Some(interval) {
            self.next = None;
        }
        let now = Instant::now();
        let next = *self.next.get_or_insert_with(|| later(now, interval));
        let left = next.saturating_duration_since(now);
        if !left.is_zero() {
            return Some(until_sample.min(left));
        }
        if can_be_rewritten(&target) {
            write(&target, interval);
        }
        let end = Instant::now();
        let took = end.saturating_duration_since(now);
        let pause = interval.saturating_sub(took).max(REST * took);
        self.next = Some(later(end, pause));
        Some(until_sample.min(pause))
    }
}

fn later(time: Instant, pause: Duration) -> Instant {
    time.checked_add(pause).unwrap_or(time)
}

fn write(target: &SummaryTarget, interval: Duration) {
    /// Ends the write, also if it panics.
    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            IS_WRITING.store(false, SeqCst);
        }
    }

    IS_WRITING.store(true, SeqCst);
    let _ends = Ends;
    if IS_ON.load(SeqCst) {
        let mut summary = snapshot::summary();
        summary.interval_ns = Some(interval.as_nanos() as f64);
        summary_target::write(target, &summary);
    }
}
