//! Where foreign code runs: the thread that calls loggers, and what happens when one misbehaves.
//!
//! A logger that returns an error is counted. One that panics is contained and not called again for
//! that name. One that does not return is left alone with its thread: another thread takes over the
//! queue, and the name stays silent until the call returns.

use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::{defaults, flush};
use crate::clock::clock;
use crate::health::{self, DropReason, count_dropped};
use crate::log::{LogError, Logger, Scalar};
use crate::name::{self, Name};

/// One entry, complete.
pub(super) struct Delivery {
    pub(super) name: &'static Name,
    pub(super) milliseconds: f64,
    pub(super) step: u64,
    pub(super) wall_time: SystemTime,
    pub(super) logger: Option<Logger>,
}

pub(super) enum Job {
    Log(Delivery),
    /// Everything before it is to be flushed.
    Flush(u64),
}

/// How many jobs wait at most; further ones wait in the collector, then in the rings.
const QUEUE: usize = 8192;
/// Loggers are flushed at least this often while entries come.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// A call that takes longer is taken for blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
/// Threads given up to blocked loggers; after that nothing is logged until one returns.
const MAX_BLOCKED: usize = 8;

static JOBS: Mutex<VecDeque<Job>> = Mutex::new(VecDeque::new());
static READY: Condvar = Condvar::new();
/// Entries between the rings and their end, be it delivery or a drop.
static PENDING: AtomicUsize = AtomicUsize::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);
static WORKER: Mutex<Option<Arc<Watch>>> = Mutex::new(None);
static BLOCKED: AtomicUsize = AtomicUsize::new(0);
/// Loggers that took something since they were last flushed, each with a name it took.
static UNFLUSHED: Mutex<Vec<(u32, Logger)>> = Mutex::new(Vec::new());

/// Values that loggers took and could not save when they were last flushed.
static UNSAVED: AtomicU64 = AtomicU64::new(0);

const MUTED_BLOCKED: u8 = 1;
const MUTED_PANICKED: u8 = 2;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entries that left the rings.
pub(super) fn expect(entries: usize) {
    PENDING.fetch_add(entries, Relaxed);
}

/// Entries that reached their end.
pub(super) fn forget(entries: usize) {
    PENDING.fetch_sub(entries, Relaxed);
}

/// Entries in the hands of loggers that do not return, or cannot save what they took.
pub(super) fn held_up() -> u64 {
    BLOCKED.load(Relaxed) as u64 + unsaved()
}

/// Values that loggers took and could not save when they were last flushed.
pub(crate) fn unsaved() -> u64 {
    UNSAVED.load(Relaxed)
}

pub(super) fn pending() -> usize {
    PENDING.load(Relaxed)
}

pub(crate) fn delivered() -> u64 {
    DELIVERED.load(Relaxed)
}

/// Moves what fits from the collector's outbox to the queue.
pub(super) fn send(outbox: &mut VecDeque<Job>) {
    if outbox.is_empty() {
        return;
    }
    ensure_worker();
    let mut jobs = lock(&JOBS);
    let room = QUEUE.saturating_sub(jobs.len()).min(outbox.len());
    jobs.extend(outbox.drain(..room));
    drop(jobs);
    READY.notify_one();
}

/// What can be seen of a worker from outside.
#[derive(Default)]
struct Watch {
    /// When the call it is in began, in ticks; zero while it is in none.
    since: AtomicU64,
    /// The name it calls a logger for.
    name: AtomicU32,
    /// Another one has taken over.
    retired: AtomicBool,
}

fn ensure_worker() {
    let mut worker = lock(&WORKER);
    if worker.is_none() {
        *worker = start_worker();
    }
}

fn start_worker() -> Option<Arc<Watch>> {
    let watch = Arc::new(Watch::default());
    let own = Arc::clone(&watch);
    match thread::Builder::new()
        .name("profiler-log".into())
        .spawn(move || work(&own))
    {
        Ok(_) => Some(watch),
        Err(error) => {
            health::notice(&format!(
                "the profiler's log thread cannot be started ({error}): single calls are not logged \
                 until it can, the summary is still exact"
            ));
            None
        }
    }
}

/// Called by the collector: gives the queue to another thread where a logger does not return.
pub(super) fn supervise() {
    let mut worker = lock(&WORKER);
    let Some(watch) = worker.as_ref() else { return };
    let since = watch.since.load(Relaxed);
    if since == 0
        || clock().nanoseconds(clock().ticks().saturating_sub(since) as f64)
            < BLOCKED_AFTER.as_nanos() as f64
    {
        return;
    }
    let Some(name) = name::by_id(watch.name.load(Relaxed)) else {
        return;
    };
    if BLOCKED.load(Relaxed) >= MAX_BLOCKED {
        return;
    }
    name.muted.store(MUTED_BLOCKED, Relaxed);
    watch.retired.store(true, Relaxed);
    BLOCKED.fetch_add(1, Relaxed);
    *worker = start_worker();
    drop(worker);
    health::notice(&format!(
        "the logger of `{}` has not returned for {} s: its entries are dropped and counted until it \
         does; the others go on",
        name.text,
        BLOCKED_AFTER.as_secs()
    ));
}

fn work(watch: &Watch) {
    let mut flush_at = Instant::now() + FLUSH_EVERY;
    loop {
        match next_job(flush_at) {
            Some(Job::Log(delivery)) => {
                let name = delivery.name;
                guarded(watch, name.id, || deliver(delivery));
                forget(1);
            }
            Some(Job::Flush(ticket)) => {
                flush_loggers(watch);
                // A retired one no longer speaks for the queue.
                if !watch.retired.load(Relaxed) {
                    flush::done(ticket);
                }
            }
            None => {
                flush_loggers(watch);
                flush_at = Instant::now() + FLUSH_EVERY;
            }
        }
        if watch.retired.load(Relaxed) {
            return;
        }
    }
}

/// The next job; none when it is time to flush.
fn next_job(flush_at: Instant) -> Option<Job> {
    let wait = flush_at.checked_duration_since(Instant::now())?;
    let (mut jobs, _) = READY
        .wait_timeout_while(lock(&JOBS), wait, |jobs| jobs.is_empty())
        .unwrap_or_else(PoisonError::into_inner);
    jobs.pop_front()
}

/// Runs foreign code for a name: watched, and with panics contained.
fn guarded(watch: &Watch, id: u32, call: impl FnOnce()) {
    watch.name.store(id, Relaxed);
    watch.since.store(clock().ticks(), Relaxed);
    let outcome = catch_unwind(AssertUnwindSafe(call));
    watch.since.store(0, Relaxed);
    let Some(name) = name::by_id(id) else { return };
    if watch.retired.load(Relaxed) {
        // It came back after all.
        name.muted.store(0, Relaxed);
        BLOCKED.fetch_sub(1, Relaxed);
    }
    if outcome.is_err() {
        name.muted.store(MUTED_PANICKED, Relaxed);
        count_dropped(DropReason::LoggerPanicked, 1);
        health::notice(&format!(
            "the logger of `{}` panicked: it is not called again for this name, and its entries are \
             counted as dropped",
            name.text
        ));
    }
}

fn deliver(delivery: Delivery) {
    let Delivery {
        name,
        milliseconds,
        step,
        wall_time,
        logger,
    } = delivery;
    match name.muted.load(Relaxed) {
        0 => {}
        MUTED_PANICKED => return count_dropped(DropReason::LoggerPanicked, 1),
        _ => return count_dropped(DropReason::LoggerBlocked, 1),
    }
    let scalar = Scalar {
        name: &name.text,
        ..Scalar::new(&name.tag, milliseconds, step, wall_time)
    };
    let result = match logger {
        Some(logger) => add(name, logger, &scalar),
        None => defaults::all()
            .into_iter()
            .try_for_each(|logger| add(name, logger, &scalar)),
    };
    match result {
        Ok(()) => drop(DELIVERED.fetch_add(1, Relaxed)),
        Err(error) => {
            count_dropped(DropReason::LoggerFailed, 1);
            say_failure(name.id, &error);
        }
    }
}

fn add(name: &Name, logger: Logger, scalar: &Scalar<'_>) -> Result<(), LogError> {
    logger.as_dyn().add(scalar)?;
    remember(name.id, logger)
}

/// Keeps a logger until it is flushed; one that belongs to a single call is flushed at once.
fn remember(id: u32, logger: Logger) -> Result<(), LogError> {
    let Some(address) = logger.address() else {
        return logger.as_dyn().flush();
    };
    let mut unflushed = lock(&UNFLUSHED);
    if !unflushed
        .iter()
        .any(|(_, other)| other.address() == Some(address))
    {
        unflushed.push((id, logger));
    }
    // Loggers made anew for each call must not pile up.
    let oldest = if unflushed.len() > 64 {
        Some(unflushed.swap_remove(0))
    } else {
        None
    };
    drop(unflushed);
    oldest.map_or(Ok(()), |(_, logger)| logger.as_dyn().flush())
}

fn flush_loggers(watch: &Watch) {
    let mut failed = Vec::new();
    // One at a time: one that blocks keeps none of the others from the next worker.
    while let Some((id, logger)) = { lock(&UNFLUSHED).pop() } {
        guarded(watch, id, || {
            if let Err(error) = logger.as_dyn().flush() {
                say_failure(id, &error);
                failed.push((id, logger));
            }
        });
        if watch.retired.load(Relaxed) {
            return;
        }
    }
    let unsaved = failed
        .iter()
        .map(|(_, logger)| logger.as_dyn().unsaved())
        .sum();
    UNSAVED.store(unsaved, Relaxed);
    // There may be room again the next time.
    lock(&UNFLUSHED).append(&mut failed);
}

/// Says once for each kind of failure what went wrong; how often is counted.
fn say_failure(id: u32, error: &LogError) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    const MAX_SAID: usize = 64;
    let error = error.to_string();
    let mut said = lock(&SAID);
    let said_by_now = said.get_or_insert_default();
    if said_by_now.len() >= MAX_SAID || !said_by_now.insert(error.clone()) {
        return;
    }
    drop(said);
    let name = name::by_id(id).map_or("?", |name| &name.text);
    health::notice(&format!("the logger of `{name}` failed: {error}"));
}
