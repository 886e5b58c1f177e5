//! The thread that reads events: started with the first measurement, called when there is much to do.

mod anchor;
mod children;
pub(crate) mod gpu_record;
pub(crate) mod graphs;
pub(crate) mod outcome;
mod queues;
mod reading;
mod report;
mod sink;
pub(crate) mod totals;

use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::thread;
use std::time::{Duration, Instant};

use self::reading::Reading;
use crate::background::Background;
use crate::clock::{clock, now};
use crate::cuda::context::Context;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::cuda::loss::CudaLoss;
use crate::cuda::thread::ring;
use crate::diagnostics::{self, DropReason, count_dropped};
use crate::own_cost;
use crate::sync::Requests;

static THREAD: Background = Background::new("profiler-cuda", run, ended);
/// Items that left the rings and wait for the device.
static PENDING: AtomicUsize = AtomicUsize::new(0);
/// When the round began that the resolver is in, in ticks; zero between rounds.
static IN_ROUND: AtomicU64 = AtomicU64::new(0);
/// Whether some context looks as if it was destroyed.
static SUSPECT: AtomicBool = AtomicBool::new(false);

/// While somebody waits for all that is pending.
const HASTE: Duration = Duration::from_micros(200);
/// While measurements come and the device passes them.
const SHORTEST: Duration = Duration::from_millis(1);
/// While the device is at work on something long.
const LONGEST: Duration = Duration::from_millis(16);
/// When nothing came for a while.
const IDLE: Duration = Duration::from_millis(200);
/// How many rounds without anything to do make it idle.
const QUIET_ROUNDS: u32 = 50;

pub(crate) fn ensure_started() -> bool {
    THREAD.ensure_started("GPU times are left out")
}

/// Whether it could not be started.
pub(crate) fn is_missing() -> bool {
    THREAD.has_failed()
}

/// Has the resolver look at the rings soon. Cheap to call again and again.
pub(crate) fn wake() {
    THREAD.wake();
}

/// A call in the context failed as if it was destroyed: the resolver finds out.
pub(crate) fn suspect(context: &Context) {
    context.set_suspect(true);
    SUSPECT.store(true, Relaxed);
    wake();
}

pub(crate) fn take_suspicion() -> bool {
    SUSPECT.load(Relaxed) && SUSPECT.swap(false, Relaxed)
}

/// Scopes whose events have not been read: in the rings, and pending on the device.
pub(crate) fn in_flight() -> usize {
    ring::waiting() + PENDING.load(Relaxed)
}

pub(crate) fn set_pending(pending: usize) {
    PENDING.store(pending, Relaxed);
    HIGH_WATER.fetch_max(pending, Relaxed);
}

/// The most items that waited for the device at once, as far as was seen.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn high_water() -> usize {
    HIGH_WATER.load(Relaxed)
}

/// How well places are known, in nanoseconds as bits; zero for not at all.
static UNCERTAINTY: AtomicU64 = AtomicU64::new(0);

pub(crate) fn uncertainty() -> Option<f64> {
    Some(f64::from_bits(UNCERTAINTY.load(Relaxed))).filter(|ns| *ns > 0.0)
}

/// What waits for it is counted, and whoever waits is told.
fn ended() {
    IN_ROUND.store(0, SeqCst);
    let mut batch = Vec::new();
    ring::drain(&mut batch);
    for item in batch {
        lose_unread(item, CudaLoss::NoResolver);
    }
    REQUESTS.recheck_served();
}

/// Counts a scope that nobody will read.
pub(crate) fn lose_unread(item: Box<GpuMeasurement>, loss: CudaLoss) {
    totals::count_without(item.scope.name, loss);
    if gpu_record::are_wanted() {
        report::lost(&item, loss);
    }
    if item.log.is_some() {
        count_dropped(DropReason::ThreadPanicked, 1);
    }
    item.give_back();
}

fn run() {
    // In this order, and looked at in the other one by `shut_down`.
    IN_ROUND.store(now().max(1), SeqCst);
    let driver = library::driver().filter(|_| !LEAVING.load(SeqCst));
    let Some(driver) = driver else {
        IN_ROUND.store(0, Release);
        return;
    };
    // A call that may not be made while another thread captures would spoil the capture otherwise.
    driver.relax_permanently();
    library::note_devices(driver);
    let mut reading = Reading::new(driver);
    let mut pace = Pace::default();
    let mut requests = VecDeque::new();
    loop {
        THREAD.clear_wakeup();
        // In this order, and looked at in the other one by `shut_down`.
        IN_ROUND.store(now().max(1), SeqCst);
        if LEAVING.load(SeqCst) {
            IN_ROUND.store(0, Release);
            return;
        }
        let wanted = REQUESTS.issued();
        let progress = reading.round(wanted > REQUESTS.answered());
        if let Some(ns) = reading.uncertainty() {
            UNCERTAINTY.store(ns.to_bits(), Relaxed);
        }
        // Before whoever waits goes on to look at it.
        own_cost::note_background();
        answer(&mut requests, wanted, &mut reading);
        note_read(&reading);
        IN_ROUND.store(0, Release);
        let hurry = !requests.is_empty();
        thread::park_timeout(pace.nap(progress, reading.is_watching(), hurry));
    }
}

/// Whether the resolver is to end.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// Has no call of ours begin in the driver from now on, and the resolver be in none, at the end of the process: its events go with it, and to ask for
/// one then is a crash in some drivers. What has not been read by now never will be.
pub(crate) fn shut_down() {
    const PATIENCE: Duration = Duration::from_millis(200);
    const PAUSE: Duration = Duration::from_micros(50);
    library::shut_down();
    LEAVING.store(true, SeqCst);
    wake();
    let start = Instant::now();
    // A driver that does not return from a call is not waited for. The looks are counted as well: the clock may stand
    // still.
    for _ in 0..PATIENCE.as_micros() / PAUSE.as_micros() {
        if IN_ROUND.load(SeqCst) == 0 || start.elapsed() >= PATIENCE {
            break;
        }
        thread::sleep(PAUSE);
    }
}

/// When the last round began in which all rings were looked at, in ticks.
static LOOKED: AtomicU64 = AtomicU64::new(0);
/// When the first scope ended that was not read then, in ticks.
static UNREAD: AtomicU64 = AtomicU64::new(u64::MAX);

fn note_read(reading: &Reading) {
    if reading.has_taken() {
        // In the other order somebody could see a late look beside an early scope.
        UNREAD.store(reading.first_end(), Release);
        LOOKED.store(IN_ROUND.load(Relaxed), Release);
    }
}

/// How far the resolver had come at some moment; what it had read then has been delivered.
pub(crate) struct ReadSoFar {
    looked: u64,
    unread: u64,
}

pub(crate) fn read_so_far() -> ReadSoFar {
    if !THREAD.is_running() || LEAVING.load(Relaxed) {
        return ReadSoFar {
            looked: u64::MAX,
            unread: u64::MAX,
        };
    }
    // In this order: see `note_read`.
    let looked = LOOKED.load(Acquire);
    ReadSoFar {
        looked,
        unread: UNREAD.load(Acquire),
    }
}

impl ReadSoFar {
    /// Whether the GPU time of each scope that ended at `end` or before has been read or given up, as far as the
    /// scopes had come to the resolver at the time `since`; both in ticks.
    pub(crate) fn has(&self, end: u64, since: u64) -> bool {
        let has = self.looked >= since && self.unread > end;
        if !has {
            wake();
        }
        has
    }
}

/// How often the resolver looks.
#[derive(Default)]
struct Pace {
    nap: Duration,
    quiet: u32,
}

impl Pace {
    fn nap(&mut self, progress: bool, watching: bool, hurry: bool) -> Duration {
        self.quiet = if progress || watching {
            0
        } else {
            self.quiet.saturating_add(1)
        };
        self.nap = if progress {
            SHORTEST
        } else {
            (self.nap * 2).clamp(SHORTEST, LONGEST)
        };
        if hurry {
            HASTE
        } else if self.quiet > QUIET_ROUNDS {
            IDLE
        } else {
            self.nap
        }
    }
}

/// Somebody waits until all that stood in the rings has been read.
struct Request {
    number: u64,
    /// The number of the first item that is not waited for.
    before: u64,
}

fn answer(requests: &mut VecDeque<Request>, wanted: u64, reading: &mut Reading) {
    let known = requests
        .back()
        .map_or(REQUESTS.answered(), |request| request.number);
    if wanted > known && reading.has_taken() {
        requests.push_back(Request {
            number: wanted,
            before: reading.drained(),
        });
    }
    while let Some(request) = requests.front()
        && reading.oldest_pending() >= request.before
        && reading.is_delivered()
    {
        // Whoever ends the program gives back what was made for it.
        if CLOSE.swap(false, Relaxed) {
            reading.close();
        }
        REQUESTS.answer_up_to(request.number);
        requests.pop_front();
    }
}

/// Requests to read everything that was measured before them.
static REQUESTS: Requests = Requests::new();
/// Whether a request also asks for the events to be destroyed. Relaxed: the lock of `REQUESTS`, which a request takes
/// after it has set this and the resolver takes before it looks, orders the two.
static CLOSE: AtomicBool = AtomicBool::new(false);

/// Waits until what was measured so far has been read, or until the time is over: how many scopes have
/// not been read then.
pub(crate) fn wait_until_read(timeout: Duration, close: bool) -> u64 {
    if LEAVING.load(Relaxed) || THREAD.has_ended() {
        return in_flight() as u64;
    }
    if !THREAD.is_running() {
        return 0;
    }
    let start = Instant::now();
    if close {
        CLOSE.store(true, Relaxed);
    }
    let request = REQUESTS.issue();
    wake();
    if REQUESTS.wait(request, timeout, || THREAD.is_running()) {
        return 0;
    }
    let left = in_flight() as u64;
    say_if_stuck(start.elapsed(), left);
    left.max(1)
}

/// A driver that does not return from a call that never waits is broken, or its device is.
fn say_if_stuck(waited: Duration, left: u64) {
    let since = IN_ROUND.load(Relaxed);
    if since == 0 {
        return;
    }
    let age = clock().nanoseconds(now().saturating_sub(since) as f64);
    if age >= 0.5 * waited.as_nanos() as f64 && age > 10e6 {
        diagnostics::warn_once(&format!(
            "the CUDA driver has not returned from a call that should not wait: {left} GPU times are not read; \
             see what `nvidia-smi` says"
        ));
    }
}
