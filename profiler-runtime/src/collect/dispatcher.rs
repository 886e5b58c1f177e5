//! Where foreign code runs: the thread that calls loggers, and what happens when one misbehaves.
//!
//! A logger that returns an error is counted. One that panics is contained and not called again for
//! that name. One that does not return is left alone with its thread: another thread takes over the
//! queue, and the name stays silent until the call returns.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant, SystemTime};

use super::watchdog::{CallInfo, Outcome, Watchdog, is_stuck};
use super::{flush, ledger};
use crate::background::{self, Calls};
use crate::diagnostics::user_code;
use crate::diagnostics::{self, DropReason};
use crate::log::{CudaSpan, LogError, Logger, Scalar};
use crate::name::CircuitBreaker;
use crate::name::{self, Name};
use crate::own_cost;
use crate::sync::{Lock, wait_while};

/// One entry, complete, for one logger.
pub(super) struct Delivery {
    pub(super) name: &'static Name,
    /// The value: GPU or CPU time.
    pub(super) milliseconds: f64,
    pub(super) cpu_ms: f64,
    pub(super) cuda: Option<CudaSpan>,
    pub(super) step: u64,
    pub(super) wall_time: SystemTime,
    pub(super) logger: Logger,
    pub(super) breaker: &'static CircuitBreaker,
}

pub(super) enum Job {
    Log(Delivery),
    /// Everything before it is to be flushed.
    Flush(u64),
}

const THREAD: &str = "profiler-log";
/// How many jobs wait at most; further ones wait in the collector, then in the rings.
const QUEUE: usize = 8192;
/// Loggers are flushed at least this often while entries come.
const FLUSH_EVERY: Duration = Duration::from_millis(500);

static JOBS: Lock<VecDeque<Job>> = Lock::new(VecDeque::new());
static READY: Condvar = Condvar::new();
static WORKER: Lock<Option<Arc<Watchdog>>> = Lock::new(None);
/// Loggers that took something since they were last flushed.
static UNFLUSHED: Lock<Vec<Unflushed>> = Lock::new(Vec::new());
const MAX_UNFLUSHED: usize = 64;

/// Moves what fits from the collector's backlog to the queue.
pub(super) fn send(backlog: &mut VecDeque<Job>) {
    if backlog.is_empty() {
        return;
    }
    ensure_worker();
    let mut jobs = JOBS.lock();
    let room = QUEUE.saturating_sub(jobs.len()).min(backlog.len());
    jobs.extend(backlog.drain(..room));
    drop(jobs);
    READY.notify_one();
}

/// A logger with a name that it took something for.
struct Unflushed {
    id: u32,
    logger: Logger,
    breaker: &'static CircuitBreaker,
    /// How many entries it took since it was last flushed.
    taken: u64,
    /// Those of them that it could not save.
    unsaved: u64,
}

pub(super) fn ensure_worker() {
    let mut worker = WORKER.lock();
    if worker.is_some() {
        return;
    }
    let started = start_worker(&mut worker);
    drop(worker);
    say_refused(started);
}

/// Starts a worker, which is the one from now on; none is where the system starts no thread.
fn start_worker(worker: &mut Option<Arc<Watchdog>>) -> io::Result<()> {
    let watchdog = Arc::new(Watchdog::default());
    let (working, failed) = (Arc::clone(&watchdog), Arc::clone(&watchdog));
    let started = background::spawn(
        THREAD,
        Calls::Unmeasured,
        move || attend(&working, work),
        move || retire(&failed),
    );
    *worker = started.is_ok().then_some(watchdog);
    started.map(drop)
}

/// Says that no worker could be started, with no lock held: whoever listens is foreign code.
fn say_refused(started: io::Result<()>) {
    if let Err(error) = started {
        diagnostics::warn_once(&format!(
            "the profiler's log thread cannot be started ({error}): single calls are not logged until it can, the \
             summary is still exact"
        ));
    }
}

/// Called by the collector: gives the queue to another thread where a logger does not return.
pub(super) fn supervise() {
    let mut worker = WORKER.lock();
    let Some(timed_out) = worker
        .as_ref()
        .and_then(|watchdog| watchdog.time_out_if_blocked())
    else {
        return;
    };
    // Whoever waits for a flush is answered by the next worker.
    if timed_out.flush_id != 0 {
        JOBS.lock().push_front(Job::Flush(timed_out.flush_id));
    }
    let started = start_worker(&mut worker);
    drop(worker);
    timed_out.say();
    say_refused(started);
}

/// Runs `work` unless another worker has taken over. Called again after a panic of the profiler's own: counts the entry
/// that the panic lost, and continues with the next job.
fn attend(watchdog: &Watchdog, work: impl FnOnce(&Watchdog)) {
    if clear_up(watchdog) {
        work(watchdog);
    }
}

/// Removes a worker that has ended after too many panics. The next job starts another one.
fn retire(watchdog: &Arc<Watchdog>) {
    let mut worker = WORKER.lock();
    if worker
        .as_ref()
        .is_some_and(|current| Arc::ptr_eq(current, watchdog))
    {
        *worker = None;
    }
}

/// Ends what a panic has left open, if anything; false where another worker has taken over.
fn clear_up(watchdog: &Watchdog) -> bool {
    if watchdog.has_entry.swap(false, Relaxed) {
        ledger::end(Err(DropReason::ThreadPanicked));
    }
    let is_on = watchdog.leave_call();
    // Who gave it up has handed the flush on.
    let flush_id = watchdog.flush_id.swap(0, Relaxed);
    if is_on && flush_id != 0 {
        JOBS.lock().push_front(Job::Flush(flush_id));
    }
    is_on
}

fn work(watchdog: &Watchdog) {
    let mut flush_at = Instant::now() + FLUSH_EVERY;
    loop {
        let on = match next_job(flush_at) {
            Some(Job::Log(delivery)) => {
                watchdog.has_entry.store(true, Relaxed);
                let on = deliver(watchdog, delivery);
                watchdog.has_entry.store(false, Relaxed);
                on
            }
            Some(Job::Flush(flush_id)) => {
                watchdog.flush_id.store(flush_id, Relaxed);
                let on = flush_loggers(watchdog);
                watchdog.flush_id.store(0, Relaxed);
                own_cost::note_background();
                if on {
                    flush::done(flush_id);
                }
                on
            }
            None => {
                let on = flush_loggers(watchdog);
                own_cost::note_background();
                flush_at = Instant::now() + FLUSH_EVERY;
                on
            }
        };
        // Another one has taken over.
        if !on {
            return;
        }
    }
}

/// The next job; none when it is time to flush.
fn next_job(flush_at: Instant) -> Option<Job> {
    let wait = flush_at.checked_duration_since(Instant::now())?;
    let (mut jobs, _) = wait_while(&READY, JOBS.lock(), wait, |jobs| jobs.is_empty());
    jobs.pop_front()
}

/// Calls a logger with an entry; false where another worker has taken over meanwhile.
fn deliver(watchdog: &Watchdog, delivery: Delivery) -> bool {
    let Delivery {
        name,
        milliseconds,
        cpu_ms,
        cuda,
        step,
        wall_time,
        logger,
        breaker,
    } = delivery;
    let stuck = || is_stuck(&logger).then_some(DropReason::LoggerBlocked);
    let silent = breaker.drop_reason().or_else(stuck);
    let call = CallInfo {
        id: name.id,
        breaker,
        logger: logger.share(),
        entries: 1,
    };
    let mut oldest = None;
    let Outcome { result, on } = watchdog.run(call, || {
        if silent.is_some() {
            // Its destructor may be the last one, and is foreign too.
            user_code::drop_value(logger);
            return Some(Ok(()));
        }
        let scalar = Scalar {
            name: &name.text,
            cpu_ms,
            cuda,
            ..Scalar::new(&name.tag, milliseconds, step, wall_time)
        };
        let taken = take(&logger, &scalar);
        if matches!(taken, Some(Ok(()))) && logger.share().is_some() {
            oldest = remember(name.id, logger, breaker);
        } else {
            user_code::drop_value(logger);
        }
        taken
    });
    ledger::end(match (silent, &result) {
        (Some(reason), _) => Err(reason),
        (None, Some(Ok(()))) => Ok(()),
        (None, Some(Err(_))) => Err(DropReason::LoggerFailed),
        (None, None) => Err(DropReason::LoggerPanicked),
    });
    if let Some(Err(error)) = result {
        say_failure(name.id, &error);
    }
    match oldest {
        // Whatever it does is its own, and not that of the logger above.
        Some(oldest) if on => flush_one(watchdog, oldest, None),
        Some(oldest) => {
            UNFLUSHED.lock().push(oldest);
            on
        }
        None => on,
    }
}

/// Hands an entry to a logger, which is flushed if it belongs to this call alone; none where it panics. The logger
/// outlives the panic: were it dropped meanwhile, a second panic would end the process.
fn take(logger: &Logger, scalar: &Scalar<'_>) -> Option<Result<(), String>> {
    user_code::call(|| {
        let taken = logger.as_dyn().add(scalar);
        let is_shared = logger.share().is_some();
        in_words(if is_shared {
            taken
        } else {
            taken.and_then(|()| logger.as_dyn().flush())
        })
    })
}

/// The error in words, which the program may have written: for where a panic is contained.
fn in_words(result: Result<(), LogError>) -> Result<(), String> {
    result.map_err(|error| {
        // Where its text panics it is not dropped as well: two panics at once would end the process.
        let error = ManuallyDrop::new(error);
        let text = error.to_string();
        drop(ManuallyDrop::into_inner(error));
        text
    })
}

/// Calls a logger on this thread, which waits for it: whoever asked for that is not given up.
pub(super) fn deliver_here(delivery: Delivery) {
    ledger::expect(1);
    deliver(&Watchdog::default(), delivery);
}

/// Keeps a logger until it is flushed. Returns another one, to be flushed now, where there are too many.
fn remember(id: u32, logger: Logger, breaker: &'static CircuitBreaker) -> Option<Unflushed> {
    let mut unflushed = UNFLUSHED.lock();
    let mut same = unflushed.iter_mut();
    match same.find(|other| other.logger.is_same(&logger)) {
        Some(known) => known.taken += 1,
        None => unflushed.push(Unflushed {
            id,
            logger,
            breaker,
            taken: 1,
            unsaved: 0,
        }),
    }
    // Loggers made anew for each call must not pile up.
    (unflushed.len() > MAX_UNFLUSHED).then(|| unflushed.swap_remove(0))
}

/// Flushes a logger on its own behalf; false where another worker has taken over. One that cannot save what it took goes
/// to `failed`, to be asked again. Without `failed` this is the last time, and what it cannot save is dropped.
fn flush_one(
    watchdog: &Watchdog,
    unflushed: Unflushed,
    failed: Option<&mut Vec<Unflushed>>,
) -> bool {
    let Unflushed {
        id,
        logger,
        breaker,
        taken,
        unsaved: before,
    } = unflushed;
    ledger::begin_saving(taken, before);
    let call = CallInfo {
        id,
        breaker,
        logger: logger.share(),
        entries: 0,
    };
    let is_last = failed.is_none();
    let (mut error, mut unsaved) = (None, 0);
    let outcome = watchdog.run(call, || {
        let asked = user_code::call(|| {
            error = in_words(logger.as_dyn().flush()).err();
            if error.is_some() {
                // The program may log to it too: of what it could not save, no more is ours than it took of us.
                unsaved = logger.as_dyn().unsaved().min(taken);
            }
        });
        match failed {
            // There may be room again the next time.
            Some(failed) if error.is_some() && asked.is_some() => failed.push(Unflushed {
                id,
                logger,
                breaker,
                taken,
                unsaved,
            }),
            _ => user_code::drop_value(logger),
        }
        asked
    });
    if is_last {
        ledger::end_saving(taken, 0);
        ledger::lose_taken(unsaved);
    } else {
        ledger::end_saving(taken, unsaved);
    }
    // A panic is said already.
    if let Some(error) = error.filter(|_| outcome.result.is_some()) {
        say_failure(id, &error);
    }
    outcome.on
}

/// Flushes what took something since the last time; false where another worker has taken over.
fn flush_loggers(watchdog: &Watchdog) -> bool {
    let mut failed = Vec::new();
    let mut on = true;
    // One at a time: one that blocks keeps none of the others from the next worker.
    while on && let Some(mut unflushed) = { UNFLUSHED.lock().pop() } {
        if is_stuck(&unflushed.logger) {
            // It holds them for as long as it does not return.
            ledger::begin_saving(unflushed.taken, unflushed.unsaved);
            unflushed.unsaved = unflushed.taken;
            ledger::end_saving(unflushed.taken, unflushed.taken);
            failed.push(unflushed);
            continue;
        }
        on = flush_one(watchdog, unflushed, Some(&mut failed));
    }
    UNFLUSHED.lock().append(&mut failed);
    on
}

/// Says once for each kind of failure what went wrong; how often is counted.
fn say_failure(id: u32, error: &str) {
    static SAID: Lock<Option<HashSet<String>>> = Lock::new(None);
    const MAX_SAID: usize = 64;
    let mut said = SAID.lock();
    let said_by_now = said.get_or_insert_default();
    if said_by_now.len() >= MAX_SAID || !said_by_now.insert(error.to_owned()) {
        return;
    }
    drop(said);
    let name = name::by_id(id).map_or("?", |name| &name.text);
    diagnostics::warn_once(&format!("the logger of `{name}` failed: {error}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_the_entry_at_hand_and_the_next_one_is_dealt_with() {
        let (watchdog, mut begun) = (Arc::new(Watchdog::default()), 0);
        let before = diagnostics::dropped(DropReason::ThreadPanicked);
        ledger::expect(1);
        let attended = std::thread::spawn(move || {
            background::run_persistently(THREAD, || {
                attend(&watchdog, |watchdog| {
                    begun += 1;
                    assert!(!watchdog.has_entry.swap(begun == 1, Relaxed));
                    if begun == 1 {
                        std::panic::panic_any("a test panics");
                    }
                });
            });
            begun
        });
        assert_eq!(attended.join().expect("the panic was caught"), 2);
        assert!(diagnostics::dropped(DropReason::ThreadPanicked) > before);
    }
}
