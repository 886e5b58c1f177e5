//! The resolver: the profiler's thread that reads GPU times from the driver.
//!
//! The first GPU scope starts it. Measured threads push finished scopes into rings, one per thread. In each round the
//! resolver takes the scopes out of the rings, asks the driver which of their end events the device has passed, reads
//! those times, and passes them on: to the statistics of the name, to the loggers, and to the sessions. Then it sleeps
//! for a while ([`pace`]) or until a ring is half full; if nothing waits, until a scope ends.
//!
//! - [`rings`]: how scopes come from the measured threads.
//! - [`state`]: one round; [`context_state`]: the part of a round that concerns one CUDA context.
//! - [`queues`]: scopes that wait for the device, by stream. [`captured`]: scopes in CUDA graphs, read at each replay.
//! - [`anchor`]: converts device times to host times. [`child_times`]: subtracts inner scopes from outer ones.
//! - [`completion`]: where a time goes that was read or lost. [`log_sender`]: its log entry. [`gpu_record`]: its record
//!   for sessions. [`bound_calls`]: calls whose time is a sum.
//! - [`exit_gate`], [`progress`], [`flush`]: how other threads wait for the resolver.

mod anchor;
mod bound_calls;
mod capture_group;
mod captured;
mod captured_scope;
mod child_times;
mod completion;
mod context_state;
mod exit_gate;
mod flush;
mod gauges;
pub(crate) mod gpu_record;
mod inner_elsewhere;
pub(crate) mod log_sender;
mod pace;
mod progress;
mod queues;
pub(crate) mod rings;
mod state;
#[cfg(test)]
mod test_scopes;
pub(crate) mod totals;

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;
use std::time::{Duration, Instant};

use profiler_cuda_sys::driver::Driver;
use profiler_host::background::Background;
use profiler_report::CudaLoss;

pub(crate) use self::captured::are_watched;
pub(crate) use self::exit_gate::ExitGate;
use self::flush::Flushes;
pub(crate) use self::flush::wait_until_read;
pub(crate) use self::gauges::{high_water, in_flight, uncertainty};
use self::pace::{Found, Pace, Waiting};
use self::progress::ReadProgress;
pub(crate) use self::progress::ReadSoFar;
use self::state::ResolverState;
use crate::clock::now;
use crate::cuda::context::Context;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::losses;
use crate::own_cost;

static THREAD: Background = Background::new("profiler-cuda", run, ended);
static GATE: ExitGate = ExitGate::new();
static PROGRESS: ReadProgress = ReadProgress::new();
/// `true` if a context was suspected since the last round.
static HAS_SUSPECT: AtomicBool = AtomicBool::new(false);
/// `true` if nearly all pairs that there may be waited for the device after the last round. Relaxed, because nothing else is
/// read by it: a late reader wakes the resolver once too often, or leaves it to its own pace.
static IS_STARVED: AtomicBool = AtomicBool::new(false);

/// Starts the resolver unless it runs. Returns `false` if it cannot be started.
pub(crate) fn ensure_started() -> bool {
    THREAD.ensure_started("GPU times are left out")
}

/// Returns `true` if the resolver could not be started, or has ended after repeated panics.
pub(crate) fn is_missing() -> bool {
    THREAD.has_failed()
}

/// Makes the resolver begin a round soon. Cheap to call repeatedly.
pub(crate) fn wake() {
    THREAD.wake();
}

/// Makes the resolver begin a round if it does not do so by itself. Called after a scope was pushed.
#[inline(always)]
pub(crate) fn wake_if_dozing() {
    THREAD.wake_if_dozing();
}

/// Makes the resolver begin a round soon, since few pairs are free: unless nearly all of them wait for the device.
pub(crate) fn wake_for_pairs() {
    if !IS_STARVED.load(Relaxed) {
        wake();
    }
}

/// Reports that a call in the context failed as if the context had been destroyed. The resolver finds out whether it
/// was; until then the measured threads leave the context alone.
pub(crate) fn suspect(context: &Context) {
    context.set_suspect(true);
    // Release: the round that sees this flag sees the one of the context too.
    HAS_SUSPECT.store(true, Release);
    wake();
}

/// Returns `true` if a context has been suspected since the last call.
fn take_suspicion() -> bool {
    // The load keeps the cache line shared in the usual case, where nothing is suspected.
    HAS_SUSPECT.load(Relaxed) && HAS_SUSPECT.swap(false, Acquire)
}

/// The body of the thread: rounds until the process exits.
fn run() {
    let Some(mut state) = initialise() else {
        return;
    };
    let mut pace = Pace::default();
    let mut flushes = Flushes::default();
    let mut sleeper = THREAD.sleeper();
    loop {
        // Before the round: a wake-up that arrives during it must cause another one.
        THREAD.clear_wakeup();
        let began = now();
        let Some(inside) = GATE.enter(began) else {
            return;
        };
        let (issued, has_waiting) = flush::requested();
        let progress = state.round(has_waiting);
        if let Some(ns) = state.uncertainty() {
            gauges::set_uncertainty(ns);
        }
        // Before `update` lets a thread continue that may look at the cost.
        own_cost::note_background();
        flushes.update(issued, &mut state);
        PROGRESS.publish(began, state.oldest_unread_end());
        drop(inside);
        losses::warn_of_drops();
        let found = Found {
            progress,
            is_urgent: !flushes.is_empty(),
            waiting: state.waiting(),
        };
        IS_STARVED.store(found.waiting == Waiting::AllPairs, Relaxed);
        match pace.poll_interval(found) {
            Some(time) => sleeper.sleep(time),
            None => sleeper.doze(state.next_task()),
        }
    }
}

/// Prepares the thread for calls of the driver. Returns `None` if the driver must not be called any more.
fn initialise() -> Option<ResolverState<Driver>> {
    let _inside = GATE.enter(now())?;
    let driver = library::driver()?;
    // In the default mode, some calls on this thread would invalidate captures of the program's threads.
    driver.relax_permanently();
    library::note_devices(driver);
    Some(ResolverState::new(driver))
}

/// Called when the thread ends after repeated panics: counts the scopes that wait for it, and lets flushes return.
fn ended() {
    let mut batch = Vec::new();
    rings::drain(&mut batch);
    for measurement in batch {
        completion::lose_unread(measurement, CudaLoss::NoResolver);
    }
    flush::recheck_served();
}

/// Keeps the profiler out of the driver from now on, because the process exits. Waits until the resolver has left it,
/// for 200 ms at most. Scopes that have not been read by now stay unread.
pub(crate) fn shut_down() {
    const PATIENCE: Duration = Duration::from_millis(200);
    const PAUSE: Duration = Duration::from_micros(50);
    library::shut_down();
    GATE.close();
    wake();
    let start = Instant::now();
    // The driver may never return from a call, so the wait is bounded. The number of pauses is bounded as well, in case
    // the system's clock stands still.
    for _ in 0..PATIENCE.as_micros() / PAUSE.as_micros() {
        if !GATE.is_occupied() || start.elapsed() >= PATIENCE {
            break;
        }
        thread::sleep(PAUSE);
    }
}

/// Returns `true` if GPU times may be read although no further scope ends: of scopes that have ended, and of replays.
pub(crate) fn times_may_come() -> bool {
    in_flight() > 0 || are_watched()
}

/// Returns how far the resolver has come.
pub(crate) fn read_so_far() -> ReadSoFar {
    if !THREAD.is_running() || GATE.is_closed() {
        return ReadSoFar::EVERYTHING;
    }
    PROGRESS.read()
}

impl ReadSoFar {
    /// As [`includes`](Self::includes), and wakes the resolver if the answer is `false`.
    pub(crate) fn has(&self, end: u64, since: u64) -> bool {
        let has = self.includes(end, since);
        if !has {
            wake();
        }
        has
    }
}
