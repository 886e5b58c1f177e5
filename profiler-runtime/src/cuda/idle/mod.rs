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
//! - [`innermost`]: which cell of a thread says it.
//! - [`states`]: what a device did, by its pairs.
//! - [`account`]: joins both, some seconds later.
//! - [`charges`]: the idle time of each function, from counts of samples and its exact self time.
//!
//! Samples are taken by a thread of their own. The rhythm of the resolver follows the device: it would sample what the program
//! does when the device has just ended something. The account begins when the first GPU time is read, and the thread goes on to
//! the end of the process: the samples of a function must be of the same times as its self time. The intervals vary at
//! random, so that a program with a rhythm of its own is not sampled at the same places.
//!
//! While no scope is open, there is nothing to sample. After ten seconds of that the thread rests until the next GPU time is
//! read. What a device waited for meanwhile counts as outside of all functions, up to the beginning of that time's scope. So does
//! a function that begins before that scope: its call does not wake the thread.

mod account;
mod charges;
mod innermost;
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
use profiler_host::process::thread::{number, system_id};
use profiler_host::process::thread_times::is_off_processor;
use profiler_host::sync::{Lock, ReentrancyGuard};
use profiler_report::SampledIdle;

use self::account::{Account, OUTSIDE, Sample};
use self::charges::NameTime;
use self::scan::Scan;
use self::states::{Pair, Sums};
use crate::clock::{WallAnchor, clock, now};
use crate::cuda::context::measurement::{CpuSpan, GpuMeasurement};
use crate::name::{self, Name};
use crate::own_cost;
use crate::switch::{self, with_control};

/// The mean time between two rounds of samples. To wake a thread takes more than half of what a round costs: 33 µs of
/// processor time on a busy virtual machine.
const INTERVAL: Duration = Duration::from_millis(40);
/// Settles the account this often, in rounds.
const SETTLE_EVERY: u32 = 25;
/// The thread rests once no scope was open for this long.
const REST_AFTER: Duration = Duration::from_secs(10);
/// A pair that is read later than this after it began may be counted from here on only.
const LATENESS: Duration = Duration::from_secs(10);
/// A device begins an event this much later than it was recorded, at most, if nothing holds it up.
const BEGINS_WITHIN_NS: f64 = 10_000.0;
/// Of how many threads, at most, the system is asked in one round whether they are off the processor: 8 µs each.
const MOST_STATES: usize = 16;
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
    /// What was known of each name when the account began.
    before: Vec<Before>,
    launching: Known,
    /// Since when the thread rests, in ticks.
    rests_since: Option<u64>,
    /// How often measuring had been turned off or on when the account was told.
    switches: usize,
}

impl State {
    /// Tells the account when measuring was off.
    fn renew_off(&mut self) {
        let switches = switch::switches();
        if self.switches != switches {
            self.switches = switches;
            self.account.set_off(switch::off_spans());
        }
    }
}

/// What was known of a name when the account began.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// For how long it had been innermost, in ticks. Of the calls that had ended.
    ticks: i64,
    /// How many of its calls were open.
    open: u64,
}

impl Before {
    fn of(name: &Name) -> Self {
        let totals = name.totals();
        Self {
            ticks: totals.own + name.covered.load(Relaxed),
            open: totals.open(),
        }
    }
}

/// A copy of the numbers in `LAUNCHING`, so that its lock, which measured threads take, is not taken for each GPU time.
#[derive(Debug, Default)]
struct Known {
    threads: BTreeMap<u32, Numbers>,
    numbers: BTreeSet<u32>,
    /// The system's ids of the threads, by the numbers in their cells.
    system_ids: BTreeMap<u32, u64>,
    changes: usize,
}

impl Known {
    fn renew(&mut self) {
        let changes = CHANGES.load(Acquire);
        if self.changes != changes {
            self.threads.clone_from(&LAUNCHING.lock().threads);
            self.numbers = self.threads.values().map(|thread| thread.cells).collect();
            let ids = self.threads.values();
            let ids = ids.filter_map(|thread| Some((thread.cells, thread.system_id?)));
            self.system_ids = ids.collect();
            self.changes = changes;
        }
    }

    /// Notes at the samples of threads that launch whether these were off the processor. If they are too many, `random` says
    /// which ones are asked, so that none is asked more often than others.
    fn add_states(&self, samples: &mut [Sample], random: u64) {
        let known = samples.iter_mut().filter_map(|sample| {
            let id = self.system_ids.get(&sample.thread)?;
            Some((sample, *id))
        });
        let mut known: Vec<(&mut Sample, u64)> = known.collect();
        let first = random.checked_rem(known.len() as u64).unwrap_or(0);
        known.rotate_left(usize::try_from(first).unwrap_or(0));
        for (sample, id) in known.into_iter().take(MOST_STATES) {
            sample.is_off = is_off_processor(id);
        }
    }

    /// Returns the thread that opened the scope with this key.
    fn thread_of(&self, key: u64) -> Option<u32> {
        let gpu_thread = u32::try_from(key >> 40).ok()?;
        Some(self.threads.get(&gpu_thread)?.cells)
    }
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

/// What a thread is known by.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The number in its cells.
    cells: u32,
    system_id: Option<u64>,
}

/// The threads that have opened GPU scopes.
#[derive(Debug, Default)]
struct Launching {
    /// By the number in the keys of their scopes.
    threads: BTreeMap<u32, Numbers>,
    /// Those that have ended, the first one first. Their last scopes may not have been read yet.
    ended: VecDeque<u32>,
}

/// Notes that the calling thread opens GPU scopes: `gpu_thread` is in the upper bits of their keys.
pub(crate) fn note_launching(gpu_thread: u32) {
    // A measured allocator must not open a scope here.
    let _reentrancy = ReentrancyGuard::try_enter();
    let numbers = Numbers {
        cells: this_thread(),
        system_id: system_id(),
    };
    let mut launching = LAUNCHING.lock();
    if launching.threads.len() >= MAX_LAUNCHING {
        let Some(ended) = launching.ended.pop_front() else {
            return;
        };
        launching.threads.remove(&ended);
    }
    launching.threads.insert(gpu_thread, numbers);
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

/// Adds a GPU time that was read. With the first one the account begins, and the sampler starts.
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
    let mut account = ACCOUNT.lock();
    if account.is_none() {
        drop(account);
        // Without the lock: it reads all names.
        let new = new_state();
        account = ACCOUNT.lock();
        account.get_or_insert(new);
    }
    let Some(state) = account.as_deref_mut() else {
        return;
    };
    state.launching.renew();
    state.renew_off();
    let rested = state.rests_since.take();
    if let Some(since) = rested {
        let now = anchor.ticks();
        // A scope that ended before was read late.
        let until = if opened > since { opened } else { now };
        state.account.add_rest((since, until), now);
    }
    let pair = Pair {
        begin,
        opened: if begin - opened > at_once {
            opened
        } else {
            begin
        },
        end: begin.saturating_add(length),
        thread: state.launching.thread_of(measurement.scope.key),
        is_busy: read.is_busy,
    };
    state.account.add(device, pair);
    drop(account);
    if rested.is_some() {
        THREAD.wake();
    }
}

/// Counts a GPU time that was lost, or has no place on the time line of the host. Those before the account began are not in it.
pub(crate) fn add_unplaced(device: Option<u32>) {
    if let Some(state) = ACCOUNT.lock().as_deref_mut() {
        state.account.add_unplaced(device);
    }
}

/// Notes a call whose GPU time was lost, by its time on the CPU: what the device did for it is not known.
pub(crate) fn add_lost(span: CpuSpan) {
    if let Some(state) = ACCOUNT.lock().as_deref_mut() {
        let elapsed = u64::try_from(span.elapsed).unwrap_or(0);
        state
            .account
            .add_lost(span.end.saturating_sub(elapsed), span.end);
    }
}

/// The body of the sampler's thread.
fn run() {
    let mut scan = Scan::default();
    let mut launching = Known::default();
    let mut found = Vec::new();
    let mut random = now() | 1;
    let mut rounds = 0_u32;
    let mut quiet = Quiet::default();
    loop {
        thread::park_timeout(pause(&mut random));
        launching.renew();
        found.clear();
        let at = now();
        let part = scan.round(at, &launching.numbers, &mut found);
        launching.add_states(&mut found, random);
        let is_quiet = found.iter().all(|sample| sample.name == OUTSIDE);
        quiet.note(at, is_quiet.then_some(part));
        let mut account = ACCOUNT.lock();
        let Some(state) = account.as_deref_mut() else {
            continue;
        };
        state.account.add_round(at, part, &found);
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(SETTLE_EVERY) {
            let until = at.saturating_sub(clock().in_ticks(LATENESS));
            state.renew_off();
            state.account.settle(until);
        }
        let may_rest = quiet.has_lasted(clock().in_ticks(REST_AFTER), at);
        state.rests_since = may_rest.then_some(at);
        drop(account);
        if may_rest {
            own_cost::note_background();
            rest();
            quiet = Quiet::default();
        } else if rounds.is_multiple_of(SETTLE_EVERY) {
            own_cost::note_background();
        }
    }
}

/// For how long no scope was open.
#[derive(Debug, Default)]
struct Quiet {
    since: Option<u64>,
    /// How often all threads were looked at since.
    turns: f64,
}

impl Quiet {
    /// Notes a round that found no open scope among this part of all threads, or one among any part.
    fn note(&mut self, at: u64, part: Option<f64>) {
        let Some(part) = part else {
            return *self = Self::default();
        };
        self.since.get_or_insert(at);
        self.turns += part;
    }

    /// Returns `true` if all threads were looked at, and it is as long as this in ticks.
    fn has_lasted(&self, ticks: u64, now: u64) -> bool {
        self.turns >= 1.0 && self.since.is_some_and(|since| now - since >= ticks)
    }
}

/// Sleeps until a GPU time has ended the rest. The lock of the account orders that before the wakeup, so none is missed: see
/// [`Background`].
fn rest() {
    loop {
        THREAD.clear_wakeup();
        let rests = |state: &State| state.rests_since.is_some();
        if !ACCOUNT.lock().as_deref().is_some_and(rests) {
            return;
        }
        thread::park();
    }
}

/// Begins an account.
fn new_state() -> Box<State> {
    Box::new(State {
        before: name::all().into_iter().map(Before::of).collect(),
        account: Account::new(now()),
        launching: Known::default(),
        rests_since: None,
        switches: 0,
    })
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
    /// The longest time of a call that has ended.
    pub(crate) longest_call_ns: f64,
    /// `true` if a call has not ended.
    pub(crate) is_open: bool,
}

/// Returns what each device did since the account began; nothing if there were no GPU times.
pub(crate) fn devices(self_times: impl Iterator<Item = SelfTime>) -> Vec<SampledIdle> {
    let mut account = ACCOUNT.lock();
    let Some(state) = account.as_deref_mut() else {
        return Vec::new();
    };
    state.renew_off();
    let before = state.before.clone();
    let samples = state.account.samples().to_vec();
    // No pause is shorter, but the first round may come soon after the account began.
    let interval_ns = ns(state.account.interval()).max(INTERVAL.as_nanos() as f64 / 2.0);
    let settled = state.account.settled();
    drop(account);
    let all = name::all();
    let known = |time: SelfTime| {
        let index = time.name as usize;
        let covered = all.get(index).map_or(0, |name| name.covered.load(Relaxed));
        let before = before.get(index).copied().unwrap_or_default();
        let samples = samples.get(index).copied().unwrap_or_default();
        NameTime {
            id: time.name,
            self_ns: (time.ns + ns((covered - before.ticks) as f64)).max(0.0),
            before_ns: before.open as f64 * time.longest_call_ns,
            samples: samples.own,
            entered: samples.entered,
            is_open: time.is_open,
        }
    };
    let names: Vec<NameTime> = self_times.map(known).collect();
    let text = |id: u32| {
        all.get(id as usize)
            .map_or_else(String::new, |name| name.text.clone())
    };
    let of_device = |settled: account::Settled| {
        let Sums {
            busy,
            host_paced,
            idle,
            unknown,
            launched,
            late,
        } = settled.sums;
        let mut device = SampledIdle {
            device: settled.ordinal,
            busy_ns: ns(busy as f64),
            host_paced_ns: ns(host_paced as f64),
            idle_ns: ns(idle as f64),
            unknown_ns: ns(unknown as f64),
            launched_ns: ns(launched as f64),
            not_sampled_ns: ns(settled.counts.unsampled as f64),
            late_ns: ns(late as f64),
            unplaced: settled.unplaced,
            interval_ns,
            ..SampledIdle::default()
        };
        charges::share(&mut device, &settled.counts, &names, text);
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
