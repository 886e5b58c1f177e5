//! Requests of the sessions and their windows to the thread that makes all calls of CUPTI, and how they wait for it.
//! [`round`] has the calls.
//!
//! # States
//!
//! | demand of the sessions | CUPTI |
//! |---|---|
//! | [`Demand::IfPossible`] or [`Demand::Required`] | subscribed, callbacks and records enabled |
//! | [`Demand::Rest`]: windows have closed and wait for records | subscribed, nothing enabled |
//! | [`Demand::Nothing`] | not subscribed: other tools can use it |
//!
//! Measured threads only set the demand. `cuptiFinalize` is never called: it is safe in no program with several threads.
//!
//! # How windows wait
//!
//! The windows' thread asks for a flush ([`Flushed::includes`]) and takes what is ready once it has happened. A flush stores
//! when it began after everything that CUPTI gave back is among what is ready; the store releases, and the load acquires.

mod round;

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use std::thread;
use std::time::{Duration, Instant};

use super::callback;
use super::status::KernelStatus;
use crate::background::Background;
use crate::cuda::ffi::library::{self, DiscoveryReason};
use crate::cuda::resolver::ExitGate;
use crate::own_cost;
use crate::sync::Lock;
use round::Recorder;

static THREAD: Background = Background::new("profiler-kernels", run, ended);
static GATE: ExitGate = ExitGate::new();
static DEMAND: AtomicU8 = AtomicU8::new(Demand::Nothing as u8);
/// Counts the times that the sessions began to want kernels: each is one attempt to begin.
static ATTEMPT: AtomicU32 = AtomicU32::new(0);
/// The last attempt whose outcome is known, or that waits for the program to initialise the driver.
static ATTEMPTED: AtomicU32 = AtomicU32::new(0);
static STATUS: Lock<Option<KernelStatus>> = Lock::new(None);
static RECORDING: Lock<Option<Recording>> = Lock::new(None);
/// `true` while CUPTI may have records.
static IS_SUBSCRIBED: AtomicBool = AtomicBool::new(false);
/// `true` while CUPTI is subscribed to and enabled.
static IS_STARTING: AtomicBool = AtomicBool::new(false);
/// When the last flush began, and the last one that asked for incomplete records too, in ticks.
static FLUSHED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// The flush that is asked for: 0 for none, 1 for one, 2 for one that includes incomplete records.
static FLUSH: AtomicU8 = AtomicU8::new(0);

/// The demand of the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Demand {
    /// Nothing.
    #[default]
    Nothing,
    /// The records of windows that have closed.
    Rest,
    /// That it records, if that is possible.
    IfPossible,
    /// That it records, and a warning if that is not possible.
    Required,
}

impl Demand {
    fn now() -> Self {
        match DEMAND.load(Relaxed) {
            0 => Self::Nothing,
            1 => Self::Rest,
            2 => Self::IfPossible,
            _ => Self::Required,
        }
    }
}

/// The period in which CUPTI records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    /// When it began, in ticks.
    pub(crate) since: u64,
    /// The nanoseconds that are added to CUPTI's times: zero if its clock is the profiler's.
    pub(crate) clock_offset: i64,
}

/// Sets what the sessions want. Starts the recorder's thread if the program uses CUDA; otherwise a later call does.
pub(crate) fn want_kernels(demand: Demand) {
    let before = DEMAND.swap(demand as u8, Relaxed);
    if is_new_attempt(before, demand) {
        ATTEMPT.fetch_add(1, Relaxed);
    }
    let is_new = before < Demand::IfPossible as u8;
    let is_found = || {
        // Looking for a library that is not loaded takes time: done once, then left to measured calls.
        library::is_in_use() || is_new && library::find(DiscoveryReason::MeasuredCall).is_some()
    };
    let is_needed = demand >= Demand::IfPossible && is_found();
    if is_needed && !THREAD.is_running() {
        THREAD.ensure_started("kernels are not recorded");
    }
    if before != demand as u8 {
        // A round that has begun before sees the demand, or a wakeup: see `run`.
        fence(SeqCst);
        THREAD.wake();
    }
}

/// Returns `true` if a change of the demand asks for another attempt to begin: also if kernels are required from now on,
/// since an attempt that failed before gave no warning.
fn is_new_attempt(before: u8, demand: Demand) -> bool {
    demand >= Demand::IfPossible && before < demand as u8
}

/// Waits until CUPTI records, or it is known that it does not.
pub(crate) fn wait_until_ready(timeout: Duration) {
    const STEP: Duration = Duration::from_micros(200);
    let start = Instant::now();
    let is_pending = || {
        let wants = Demand::now() >= Demand::IfPossible;
        wants && THREAD.is_running() && ATTEMPTED.load(Acquire) != ATTEMPT.load(Relaxed)
    };
    while is_pending() && start.elapsed() < timeout {
        thread::sleep(STEP);
    }
}

/// Returns the period in which CUPTI records; `None` if it does not.
pub(crate) fn recording() -> Option<Recording> {
    *RECORDING.lock()
}

/// When CUPTI was flushed last: what it gave then is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed([u64; 2]);

/// Returns when CUPTI was flushed last, or [`Flushed::FOREVER`] if it has no records.
pub(crate) fn flushed() -> Flushed {
    if !IS_SUBSCRIBED.load(Acquire) || THREAD.has_failed() || GATE.is_closed() {
        return Flushed::FOREVER;
    }
    Flushed([FLUSHED[0].load(Acquire), FLUSHED[1].load(Acquire)])
}

impl Flushed {
    /// The state of a recorder that has no more records.
    const FOREVER: Self = Self([u64::MAX; 2]);

    /// Returns `true` if CUPTI has no more records: all that it gave is ready.
    pub(crate) fn is_final(self) -> bool {
        self.0 == Self::FOREVER.0
    }

    /// Returns `true` if a flush began at `at` or later. Otherwise asks for one. With `is_forced`, it includes incomplete
    /// records, unless some session records.
    pub(crate) fn includes(self, at: u64, is_forced: bool) -> bool {
        let has_flushed = self.0[usize::from(is_forced)] >= at;
        if !has_flushed {
            FLUSH.fetch_max(1 + u8::from(is_forced), Relaxed);
            fence(SeqCst);
            THREAD.wake();
        }
        has_flushed
    }
}

/// Keeps the recorder out of CUPTI from now on, because the process exits.
///
/// Where nothing more is wanted of it, it first ends its subscription: CUPTI, which is taken down after this, then calls the
/// profiler no more if that ends in time. Waits for that, and until the recorder has left CUPTI, for 200 ms at most; while it
/// enables CUPTI, for 5 seconds: the first time takes long, and CUPTI must not be at work when its library is taken down.
pub(crate) fn shut_down() {
    const STEP: Duration = Duration::from_micros(50);
    let start = Instant::now();
    let wait_while = |is_busy: &dyn Fn() -> bool| {
        while is_busy() && start.elapsed() < exit_patience(IS_STARTING.load(Relaxed)) {
            thread::sleep(STEP);
        }
    };
    callback::stop();
    THREAD.wake();
    let is_ending = || Demand::now() == Demand::Nothing && IS_SUBSCRIBED.load(Acquire);
    wait_while(&|| is_ending() && THREAD.is_running());
    GATE.close();
    THREAD.wake();
    wait_while(&|| GATE.is_occupied());
}

/// Returns how long the exit of the process waits for the recorder.
const fn exit_patience(is_starting: bool) -> Duration {
    if is_starting {
        Duration::from_secs(5)
    } else {
        Duration::from_millis(200)
    }
}

pub(super) fn status() -> KernelStatus {
    STATUS.lock().clone().unwrap_or_default()
}

fn set_status(status: KernelStatus) {
    *STATUS.lock() = Some(status);
}

/// Called when the thread ends after repeated panics.
fn ended() {
    callback::stop();
    IS_SUBSCRIBED.store(false, Release);
}

fn run() {
    let mut recorder = Recorder::default();
    loop {
        THREAD.clear_wakeup();
        // Either this round sees what was asked for, or the thread that asks finds no wakeup pending and unparks this one.
        fence(SeqCst);
        let nap = recorder.round();
        own_cost::note_background();
        match nap {
            Some(nap) => thread::park_timeout(nap),
            None => thread::park(),
        }
    }
}

fn wake() {
    THREAD.wake();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_become_required_are_another_attempt() {
        use Demand::{IfPossible, Nothing, Required, Rest};
        for (before, demand) in [
            (Nothing, IfPossible),
            (Rest, Required),
            (IfPossible, Required),
        ] {
            assert!(
                is_new_attempt(before as u8, demand),
                "{before:?} {demand:?}"
            );
        }
        for (before, demand) in [
            (Nothing, Rest),
            (IfPossible, IfPossible),
            (Required, IfPossible),
            (Required, Rest),
        ] {
            assert!(
                !is_new_attempt(before as u8, demand),
                "{before:?} {demand:?}"
            );
        }
    }

    #[test]
    fn the_exit_waits_for_a_start_but_not_for_ever() {
        assert!(exit_patience(true) > exit_patience(false));
        assert!(exit_patience(true) <= Duration::from_secs(10));
    }

    #[test]
    fn demands_are_ordered() {
        assert!(Demand::Nothing < Demand::Rest);
        assert!(Demand::Rest < Demand::IfPossible && Demand::IfPossible < Demand::Required);
    }
}
