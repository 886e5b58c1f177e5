//! Why the devices are idle, in the running statistics: without a session, without kernels, and without an instruction on the
//! measured path.
//!
//! ```text
//! resolver ──── each GPU time that was read, with its place ────▶ pending pairs ─┐
//!                                                                               ├─▶ states, and counts of samples in idle time
//! the sampler's thread ──── the innermost name of each thread ──▶ samples ──────┘
//! ```
//!
//! - [`scan`]: the innermost name of each thread, read from its cells.
//! - [`states`]: what a device did, by its pairs.
//! - [`account`]: joins both, some seconds later.
//! - [`charges`]: the idle time of each function, from counts of samples and its exact self time.
//!
//! Samples are taken by a thread of their own. The rhythm of the resolver follows the device: it would sample what the program
//! does when the device has just ended something. The thread starts with the first GPU time that is read, and goes on to
//! the end of the process: the samples of a function must be of the same times as its self time. The intervals vary at
//! random, so that a program with a rhythm of its own is not sampled at the same places.

mod account;
mod charges;
mod scan;
mod states;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{
    AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;
use std::time::{Duration, SystemTime};

use profiler_host::background::Background;
use profiler_host::process::thread::number;
use profiler_host::sync::{Lock, ReentrancyGuard};
use profiler_report::SampledIdle;

use self::account::Account;
use self::charges::NameTime;
use self::scan::Scan;
use self::states::{Pair, Sums};
use crate::clock::{WallAnchor, clock, now};
use crate::cuda::context::measurement::GpuMeasurement;
use crate::name;
use crate::own_cost;
use crate::switch::with_control;

/// The mean time between two rounds of samples. To wake a thread takes more than half of what a round costs: 33 µs of
/// processor time on a busy virtual machine.
const INTERVAL: Duration = Duration::from_millis(40);
/// Settles the account this often, in rounds.
const SETTLE_EVERY: u32 = 25;
/// A pair that is read later than this after it began may be counted from here on only.
const LATENESS: Duration = Duration::from_secs(10);
/// A device begins an event this much later than it was recorded, at most, if nothing holds it up.
const BEGINS_WITHIN_NS: f64 = 10_000.0;
/// The most threads whose launches are known.
const MAX_LAUNCHING: usize = 1 << 12;

static THREAD: Background = Background::new("profiler-idle", run, || {});
static ACCOUNT: Lock<Option<Box<State>>> = Lock::new(None);
/// Whether the settings ask for the account: read once, with the first GPU time.
static IS_ON: AtomicU8 = AtomicU8::new(UNKNOWN);
static LAUNCHING: Lock<Launching> = Lock::new(Launching {
    threads: BTreeMap::new(),
    ended: VecDeque::new(),
});
/// How often `LAUNCHING` has changed. It is released after the change and acquired before the map is read, so that a sampler
/// that sees the number finds the change.
static CHANGES: AtomicUsize = AtomicUsize::new(0);

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

#[derive(Debug, Default)]
struct State {
    account: Account,
    /// The self times of all names when the first samples were taken, in ticks.
    before: Vec<i64>,
}

/// Returns `true` if the account is kept.
pub(crate) fn is_on() -> bool {
    match IS_ON.load(Relaxed) {
        UNKNOWN => {
            let is_on = with_control(|control| control.settings.gpu_idle);
            IS_ON.store(if is_on { ON } else { OFF }, Relaxed);
            is_on
        }
        known => known == ON,
    }
}

/// The threads that have opened GPU scopes.
#[derive(Debug, Default)]
struct Launching {
    /// By the number in the keys of their scopes, the number in their cells.
    threads: BTreeMap<u32, u32>,
    /// Those that have ended, the first one first. Their last scopes may not have been read yet.
    ended: VecDeque<u32>,
}

/// Notes that the calling thread opens GPU scopes: `gpu_thread` is in the upper bits of their keys.
pub(crate) fn note_launching(gpu_thread: u32) {
    // A measured allocator must not open a scope here.
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut launching = LAUNCHING.lock();
    if launching.threads.len() >= MAX_LAUNCHING {
        let Some(ended) = launching.ended.pop_front() else {
            return;
        };
        launching.threads.remove(&ended);
    }
    launching.threads.insert(gpu_thread, this_thread());
    drop(launching);
    CHANGES.fetch_add(1, Release);
}

/// Notes that a thread that has opened GPU scopes ends.
pub(crate) fn note_ended(gpu_thread: u32) {
    let mut launching = LAUNCHING.lock();
    if launching.threads.contains_key(&gpu_thread) {
        launching.ended.push_back(gpu_thread);
    }
}

/// Returns the number by which the cells of the calling thread know it.
#[allow(clippy::cast_possible_truncation, reason = "the lower half")]
fn this_thread() -> u32 {
    number() as u32
}

/// A GPU time that was read.
pub(crate) struct Read {
    pub(crate) ns: f64,
    /// `true` if nothing else was inside, and the device took longer than the host.
    pub(crate) is_busy: bool,
    /// When it began on the time line of the host, and how uncertain that is in nanoseconds.
    pub(crate) begin: Option<(SystemTime, f64)>,
}

/// Adds a GPU time that was read. The first one starts the sampler.
pub(crate) fn add(measurement: &GpuMeasurement, device: Option<u32>, read: &Read) {
    let Some((begin, uncertainty_ns)) = read.begin else {
        return add_unplaced(device);
    };
    if !THREAD.ensure_started("idle times of the devices are left out") {
        return;
    }
    let elapsed = u64::try_from(measurement.span.elapsed).unwrap_or(0);
    let opened = measurement.span.end.saturating_sub(elapsed);
    let ticks =
        |ns: f64| clock().in_ticks(Duration::try_from_secs_f64(ns / 1e9).unwrap_or_default());
    let length = ticks(read.ns);
    let anchor = WallAnchor::now();
    // The device passes no event before it is recorded, or after it was seen to have passed it.
    let latest = anchor.ticks().saturating_sub(length).max(opened);
    let begin = anchor.ticks_at(begin).clamp(opened, latest);
    let at_once = ticks(uncertainty_ns + BEGINS_WITHIN_NS);
    let pair = Pair {
        begin,
        opened: if begin - opened > at_once {
            opened
        } else {
            begin
        },
        end: begin.saturating_add(length),
        thread: thread_of(measurement.scope.key),
        is_busy: read.is_busy,
    };
    if let Some(state) = ACCOUNT.lock().as_deref_mut() {
        state.account.add(device, pair);
    }
}

/// Counts a GPU time that was lost, or has no place on the time line of the host.
pub(crate) fn add_unplaced(device: Option<u32>) {
    if let Some(state) = ACCOUNT.lock().as_deref_mut() {
        state.account.add_unplaced(device);
    }
}

/// Returns the thread that opened the scope with this key.
fn thread_of(key: u64) -> Option<u32> {
    let gpu_thread = u32::try_from(key >> 40).ok()?;
    LAUNCHING.lock().threads.get(&gpu_thread).copied()
}

/// The body of the sampler's thread.
fn run() {
    let mut scan = Scan::default();
    let mut launching = (BTreeSet::new(), None);
    let mut found = Vec::new();
    let mut random = now() | 1;
    let mut rounds = 0_u32;
    begin();
    loop {
        thread::park_timeout(pause(&mut random));
        let changes = CHANGES.load(Acquire);
        if launching.1 != Some(changes) {
            launching = (launching_threads(), Some(changes));
        }
        found.clear();
        let at = now();
        scan.round(at, &launching.0, &mut found);
        let mut account = ACCOUNT.lock();
        let Some(state) = account.as_deref_mut() else {
            return;
        };
        state.account.add_round(at, &found);
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(SETTLE_EVERY) {
            let until = at.saturating_sub(clock().in_ticks(LATENESS));
            state.account.settle(until);
            drop(account);
            own_cost::note_background();
        }
    }
}

fn launching_threads() -> BTreeSet<u32> {
    LAUNCHING.lock().threads.values().copied().collect()
}

/// Notes the self times before the first sample, unless the thread starts again after a panic.
fn begin() {
    if ACCOUNT.lock().is_some() {
        return;
    }
    let own = |name: &'static name::Name| name.totals().own;
    let mut state = Box::new(State {
        before: name::all().into_iter().map(own).collect(),
        ..State::default()
    });
    state.account.begin(now());
    *ACCOUNT.lock() = Some(state);
}

/// Returns a time from half of the interval to one and a half of it, evenly distributed.
fn pause(random: &mut u64) -> Duration {
    // Xorshift: Marsaglia, 2003.
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let part = (*random >> 40) as f64 / f64::from(1 << 24);
    INTERVAL.mul_f64(0.5 + part)
}

/// The self time of a name up to now, in nanoseconds.
pub(crate) struct SelfTime {
    /// The number of the name.
    pub(crate) name: u32,
    pub(crate) ns: f64,
    /// `true` if a call has not ended.
    pub(crate) is_open: bool,
}

/// Returns what each device did since the first samples; nothing if there were no GPU times.
pub(crate) fn devices(self_times: impl Iterator<Item = SelfTime>) -> Vec<SampledIdle> {
    let account = ACCOUNT.lock();
    let Some(state) = account.as_deref() else {
        return Vec::new();
    };
    let known = |time: SelfTime| {
        let before = state.before.get(time.name as usize).copied().unwrap_or(0);
        NameTime {
            id: time.name,
            text: name::by_id(time.name).map_or_else(String::new, |name| name.text.clone()),
            self_ns: (time.ns - ns(before as f64)).max(0.0),
            samples: state.account.samples_of(time.name),
            is_open: time.is_open,
        }
    };
    let names: Vec<NameTime> = self_times.map(known).collect();
    let interval_ns = ns(state.account.interval());
    let settled = state.account.settled();
    drop(account);
    let of_device = |settled: account::Settled| {
        let Sums {
            busy,
            host_paced,
            idle,
            launched,
            late,
        } = settled.sums;
        let mut device = SampledIdle {
            device: settled.ordinal,
            busy_ns: ns(busy as f64),
            host_paced_ns: ns(host_paced as f64),
            idle_ns: ns(idle as f64),
            launched_ns: ns(launched as f64),
            not_sampled_ns: ns(settled.counts.unsampled as f64),
            late_ns: ns(late as f64),
            unplaced: settled.unplaced,
            interval_ns,
            ..SampledIdle::default()
        };
        charges::share(&mut device, &settled.counts, &names);
        device
    };
    let devices = settled.into_iter().map(of_device);
    devices.filter(|device| device.wall_ns() > 0.0).collect()
}

fn ns(ticks: f64) -> f64 {
    clock().nanoseconds(ticks)
}

#[cfg(test)]
mod tests;
