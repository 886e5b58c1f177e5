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

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use std::thread;
use std::time::{Duration, Instant};

use profiler_cuda_sys::cupti::{Code, Cupti, Refused, Subscriber, calls, kind};
use profiler_cuda_sys::driver::Driver;
use profiler_host::background::Background;
use profiler_host::diagnostics;
use profiler_host::sync::{Lock, RaceCell};

use super::hook::LaunchHookState;
use super::losses::{WorkLoss, lose};
use super::ready::{MAX_WAITING, with_ready};
use super::record_clock::{ClockError, RecordClock, clock_ns};
use super::status::KernelStatus;
use super::{buffers, callback, discovery, names};
use crate::clock::{clock, now};
use crate::cuda::ffi::library::{self, DiscoveryReason};
use crate::cuda::resolver::ExitGate;
use crate::own_cost;
use crate::switch::with_control;

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
    /// Until when no work can have run, in ticks, since the program had not initialised the driver.
    pub(crate) idle_until: u64,
    /// The nanoseconds of a unit of CUPTI's clock if that is not the profiler's.
    pub(crate) other_clock: Option<f64>,
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

/// Returns `true` if CUPTI is asked to record, and it is not known yet whether it does.
pub(crate) fn is_beginning() -> bool {
    let wants = Demand::now() >= Demand::IfPossible;
    wants && THREAD.is_running() && ATTEMPTED.load(Acquire) != ATTEMPT.load(Relaxed)
}

/// Waits until CUPTI records, or it is known that it does not.
pub(crate) fn wait_until_ready(timeout: Duration) {
    const STEP: Duration = Duration::from_micros(200);
    let start = Instant::now();
    while is_beginning() && start.elapsed() < timeout {
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

pub(super) fn launch_hook_state() -> LaunchHookState {
    if callback::is_active() {
        LaunchHookState::Called
    } else if Demand::now() >= Demand::IfPossible {
        LaunchHookState::Starting
    } else {
        LaunchHookState::Unused
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

/// The records that are asked for. Only kernels are indispensable.
const KINDS: [u32; 5] = [
    kind::CONCURRENT_KERNEL,
    kind::MEMCPY,
    kind::MEMCPY_PEER,
    kind::MEMSET,
    kind::SYNCHRONIZATION,
];
/// The pause between rounds while something is recorded or awaited.
const PAUSE: Duration = Duration::from_millis(10);
/// The pause between flushes that no window has asked for: they keep buffers from filling up. A clock is read as often.
const FLUSH_PERIOD: Duration = Duration::from_millis(100);
#[derive(Debug, Default)]
pub(super) struct Recorder {
    subscriber: Option<(&'static Cupti, Subscriber)>,
    is_recording: bool,
    /// The attempt that failed last, which is not repeated.
    failed: Option<u32>,
    /// The clock of the records.
    clock: RecordClock,
    /// When the last flush, or the last look at the clock without one, began, in ticks.
    looked: u64,
    /// When the driver was last seen not to be initialised, in ticks.
    idle_until: u64,
}

impl Drop for Recorder {
    /// After a panic: lets other tools use CUPTI, and windows be delivered.
    fn drop(&mut self) {
        IS_STARTING.store(false, Relaxed);
        // While the process exits, CUPTI may be gone.
        let inside = GATE.enter(now());
        if inside.is_some() {
            self.pause();
            if let Some((cupti, subscriber)) = self.subscriber.take() {
                let _ = cupti.unsubscribe(subscriber);
            }
        }
        callback::stop();
        *RECORDING.lock() = None;
        IS_SUBSCRIBED.store(false, Release);
    }
}

impl Recorder {
    /// Runs one round. Returns how long to wait until the next one, or `None` while nothing is wanted.
    pub(super) fn round(&mut self) -> Option<Duration> {
        let _inside = GATE.enter(now())?;
        let driver = library::driver()?;
        let (demand, attempt) = (Demand::now(), ATTEMPT.load(Relaxed));
        let wants = demand >= Demand::IfPossible;
        if wants && !self.is_recording && self.failed != Some(attempt) {
            self.attempt(driver, demand, attempt);
            if GATE.is_closed() {
                return None;
            }
        } else if wants {
            // It records already, or has failed.
            ATTEMPTED.store(attempt, Release);
        } else if self.is_recording {
            self.pause();
        }
        let begun = now();
        let asked = FLUSH.swap(0, Relaxed);
        if let Some((cupti, _)) = self.subscriber {
            let period = clock().in_ticks(FLUSH_PERIOD);
            let is_due = begun.saturating_sub(self.looked) >= period;
            if asked > 0 || self.is_recording && is_due {
                let is_forced = asked > 1 && !self.is_recording;
                self.flush(cupti, is_forced);
                self.looked = begun;
            } else if is_due {
                self.check_clock(cupti);
                self.looked = begun;
            }
        }
        self.collect();
        if self.clock == RecordClock::Unknown && self.is_recording {
            self.failed = Some(attempt);
            self.end();
        }
        // After `collect`: a window that sees the flush finds what it gave.
        if asked > 0 {
            FLUSHED[0].store(begun, Release);
        }
        if asked > 1 {
            FLUSHED[1].store(begun, Release);
        }
        if demand == Demand::Nothing {
            self.end();
        }
        let is_waiting = wants && self.failed != Some(attempt);
        (is_waiting || self.subscriber.is_some()).then_some(PAUSE)
    }

    /// Begins to record, if the program has initialised the driver.
    fn attempt(&mut self, driver: &Driver, demand: Demand, attempt: u32) {
        let looked = now();
        if !driver.is_initialised() {
            self.idle_until = looked;
            set_status(KernelStatus::NoDriver);
        } else if let Err(status) = self.start_watched(driver) {
            self.failed = Some(attempt);
            if demand == Demand::Required && !GATE.is_closed() {
                diagnostics::warn_once(&format!("{status}; kernels are left out"));
            }
            set_status(status);
        }
        ATTEMPTED.store(attempt, Release);
    }

    /// Begins to record. An exit of the process waits longer meanwhile.
    fn start_watched(&mut self, driver: &Driver) -> Result<(), KernelStatus> {
        IS_STARTING.store(true, Relaxed);
        let started = self.start(driver);
        IS_STARTING.store(false, Relaxed);
        started
    }

    fn start(&mut self, driver: &Driver) -> Result<(), KernelStatus> {
        let begun = Instant::now();
        if !self.was_ready() {
            set_status(KernelStatus::Starting);
        }
        let (cupti, subscriber) = match self.subscriber {
            Some(known) => known,
            None => subscribed(driver)?,
        };
        let refused = |refused| KernelStatus::refused(cupti, refused);
        if self.subscriber.is_none() {
            // Until it has been looked at: there are no records of before.
            self.clock = RecordClock::Unknown;
        }
        self.subscriber = Some((cupti, subscriber));
        if let Err(error) = enable(cupti, subscriber) {
            // While the process exits, CUPTI is not called any more.
            if !GATE.is_closed() {
                self.end();
            }
            return Err(refused(error));
        }
        match RecordClock::of(cupti) {
            Ok(clock) => self.clock = clock,
            Err(error) => {
                if !GATE.is_closed() {
                    self.end();
                }
                return Err(unusable(error));
            }
        }
        // Before the first call is noted: what windows see of the period is complete.
        *RECORDING.lock() = Some(Recording {
            since: now(),
            idle_until: self.idle_until,
            other_clock: self.clock.other_rate(),
        });
        IS_SUBSCRIBED.store(true, Release);
        callback::start(wake);
        self.is_recording = true;
        if !self.was_ready() {
            set_status(KernelStatus::Ready {
                library: cupti.library.clone(),
                version: cupti.version().unwrap_or_default(),
                first_enable: begun.elapsed(),
            });
        }
        Ok(())
    }

    /// Returns `true` if CUPTI has recorded before, so that how long its first start took is known.
    #[allow(clippy::unused_self, reason = "the recorder's state, kept for users")]
    fn was_ready(&self) -> bool {
        status().is_ready()
    }

    /// Ends the recording. CUPTI still records the work that was launched before.
    fn pause(&mut self) {
        callback::stop();
        self.is_recording = false;
        *RECORDING.lock() = None;
        let Some((cupti, subscriber)) = self.subscriber else {
            return;
        };
        for call in calls::all() {
            let _ = cupti.set_callback(false, subscriber, call.domain, call.number);
        }
        for kind in KINDS {
            let _ = cupti.disable(kind);
        }
    }

    /// Lets other tools use CUPTI. Before that, takes what it has, though nothing waits for it.
    fn end(&mut self) {
        let Some((cupti, subscriber)) = self.subscriber else {
            return;
        };
        self.pause();
        self.flush(cupti, true);
        self.collect();
        let _ = cupti.unsubscribe(subscriber);
        self.subscriber = None;
        IS_SUBSCRIBED.store(false, Release);
    }

    /// Has CUPTI give back what it has, and finds out whether its clock is the one that it had.
    fn flush(&mut self, cupti: &Cupti, is_forced: bool) {
        let _ = cupti.flush(is_forced);
        lose(WorkLoss::Dropped, cupti.take_dropped());
        self.check_clock(cupti);
    }

    fn check_clock(&mut self, cupti: &Cupti) {
        if let Err(error) = self.clock.check(cupti) {
            give_up(error);
        }
    }

    /// Moves launches and records to where the windows take them.
    fn collect(&mut self) {
        let clock = &mut self.clock;
        let mut wrong = None;
        let unreadable = with_ready(|ready| {
            callback::drain(|launch| {
                if ready.launches.len() < MAX_WAITING {
                    ready.launches.push(launch);
                } else {
                    lose(WorkLoss::LaunchQueueFull, 1);
                }
            });
            let unreadable = buffers::read(|mut activity| {
                let times = [activity.start, activity.end].map(|time| clock.unix_ns(time));
                [activity.start, activity.end] = times.map(Option::unwrap_or_default);
                if let Err(error) = clock.check_record(activity.start) {
                    *clock = RecordClock::Unknown;
                    [activity.start, activity.end] = [0; 2];
                    wrong = Some(error);
                }
                if ready.activities.len() < MAX_WAITING {
                    ready.activities.push(activity);
                } else {
                    lose(WorkLoss::QueueFull, 1);
                }
            });
            ready.names.extend(names::take_new());
            unreadable
        });
        // With no lock held: a warning may reach user code.
        if let Some(error) = wrong {
            give_up(error);
        }
        if let Some(Refused { call, code }) = unreadable {
            diagnostics::warn_once(&format!(
                "CUPTI cannot read one of its own records ({call}, code {}): windows lack the kernels and copies that stood \
                 behind it; try the CUPTI of another release, named in PROFILER_CUPTI_LIBRARY",
                code.0
            ));
        }
    }
}

fn unusable(error: ClockError) -> KernelStatus {
    KernelStatus::UnusableClock {
        reason: error.to_string(),
    }
}

/// Notes that the times of records mean nothing from now on.
fn give_up(error: ClockError) {
    let status = unusable(error);
    diagnostics::warn_once(&format!("{status}; kernels are left out"));
    set_status(status);
}

/// Subscribes to CUPTI. Looks for a library until one has been subscribed to, which stays the one of the process.
fn subscribed(driver: &Driver) -> Result<(&'static Cupti, Subscriber), KernelStatus> {
    static LIBRARY: RaceCell<Cupti> = RaceCell::new();
    let (cupti, subscriber) = if let Some(known) = LIBRARY.get() {
        (known, subscribe(known)?)
    } else {
        let setting = with_control(|control| control.settings.cupti_library.clone());
        let begin = |cupti| subscribe(&cupti).map(|subscriber| (cupti, subscriber));
        let (found, subscriber) = discovery::find(setting.as_deref(), driver.version(), begin)?;
        (LIBRARY.get_or_init(|| found), subscriber)
    };
    if !buffers::prepare(cupti, wake) {
        let _ = cupti.unsubscribe(subscriber);
        let refused = Refused {
            call: "buffers",
            code: Code::OUT_OF_MEMORY,
        };
        return Err(KernelStatus::refused(cupti, refused));
    }
    Ok((cupti, subscriber))
}

fn subscribe(cupti: &Cupti) -> Result<Subscriber, KernelStatus> {
    unless_exiting().map_err(|refused| KernelStatus::refused(cupti, refused))?;
    // Before any other call: it tells whether another tool is there.
    //
    // SAFETY: the callback takes what CUPTI passes to it on any thread, and is never unloaded.
    let subscribed = unsafe { cupti.subscribe(callback::callback) };
    subscribed.map_err(|error| match error.code {
        code if code.means_taken() => KernelStatus::Taken {
            // SAFETY: as above.
            tool: unsafe { cupti.subscribed_tool(c"profiler-runtime", callback::callback) },
        },
        _ => KernelStatus::refused(cupti, error),
    })
}

/// Returns an error if the process exits: then CUPTI is called no more.
fn unless_exiting() -> Result<(), Refused> {
    if GATE.is_closed() {
        return Err(Refused {
            call: "the exit of the process",
            code: Code::UNKNOWN,
        });
    }
    Ok(())
}

/// Enables the callbacks and the records. The first time may take seconds.
fn enable(cupti: &'static Cupti, subscriber: Subscriber) -> Result<(), Refused> {
    static HAS_CLOCK: AtomicBool = AtomicBool::new(false);
    // SAFETY: both take what CUPTI passes to them on any thread, and are never unloaded. A buffer is not used until CUPTI
    // has given it back.
    unsafe { cupti.register_buffers(buffers::requested, buffers::completed) }?;
    if !HAS_CLOCK.swap(true, Relaxed) {
        cupti.buffers_are_zeroed();
        cupti.register_clock(clock_ns);
    }
    for call in calls::all() {
        unless_exiting()?;
        // Older libraries know fewer calls.
        let enabled = cupti.set_callback(true, subscriber, call.domain, call.number);
        if call.is_essential() {
            enabled?;
        }
    }
    for kind in KINDS {
        unless_exiting()?;
        let enabled = cupti.enable(kind);
        if kind == kind::CONCURRENT_KERNEL {
            enabled?;
        }
    }
    Ok(())
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
