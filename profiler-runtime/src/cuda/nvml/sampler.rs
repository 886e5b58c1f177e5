//! The thread that takes the samples.
//!
//! # Protocol
//!
//! Only the sampler calls NVML. It copies the readings into [`STORE`], whose lock it holds for the copy alone, so that
//! readers never wait for a call. [`last_sample`] asks for a sample by adding to `ASKED`, and waits, with a limit, until
//! `DONE` has reached that number; a window that has closed asks too, and no thread waits for it. The store of `DONE`
//! releases the sample, and the load acquires it. [`shut_down`] sets `STOPPED`, and waits with a limit until the sampler is
//! not inside a call: `IN_CALL` and `STOPPED` are sequentially consistent, so that the sampler sees that it must stop, or
//! `shut_down` sees the call.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::thread;
use std::time::{Duration, SystemTime};

use profiler_cuda_sys::driver::Driver;
use profiler_cuda_sys::nvml::Table;
use profiler_host::background::Background;
use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_host::process::platform::Instant;
use profiler_host::sync::Lock;
use profiler_report::internal::GpuSamples;
use profiler_sensors::{Call, Observer, SlowCalls};

use super::energy;
use super::now::ordinal_of;
use super::pace::Pace;
use super::sampled::SampledDevice;
use super::store::Store;
use crate::clock::unix_ns;
use crate::config::Backend;
use crate::cuda::ffi::library as driver_library;
use crate::own_cost;
use crate::switch::{self, NEVER_MEASURES, with_control};

static THREAD: Background = Background::new("profiler-gpu-samples", run, || {});
static STORE: Lock<Store> = Lock::with(Store::new(), Store::new);

/// The interval of the run in nanoseconds; 0 for none.
static RUN_NS: AtomicU64 = AtomicU64::new(0);
/// The shortest interval of the windows that are open; 0 for none.
static WINDOW_NS: AtomicU64 = AtomicU64::new(0);
static ASKED: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// `true` if the last sample of the program is asked for.
static IS_LAST: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);
/// `true` once a last sample was not taken in time: the end of the program waits for no other one.
static IS_LATE: AtomicBool = AtomicBool::new(false);
/// `true` once the sensors cannot be read at all.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);
/// The call of NVML in progress + 1; 0 for none.
static IN_CALL: AtomicU64 = AtomicU64::new(0);
/// When that call began, in nanoseconds since the Unix epoch.
static CALL_BEGAN: AtomicU64 = AtomicU64::new(0);

/// When NVML had opened the devices, and how long that took, in nanoseconds since the Unix epoch and in nanoseconds; 0 before.
static OPENED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The least time between two samples, except for the last one of the program.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long the end of the program waits for a last sample, and for a call in progress. A window waits for no call that has
/// lasted longer.
const PATIENCE: Duration = Duration::from_millis(250);
/// A call that takes longer is reported as one that does not return.
const HANGS_NS: u64 = 1_000_000_000;

/// Starts the sampler if measuring is on, and the settings, or a session that asks for `session`, want samples. Called
/// with no lock held: warnings may reach user code.
pub(crate) fn begin(session: Option<Duration>) {
    let (run, backend) = with_control(|control| {
        let settings = &control.settings;
        (settings.gpu_samples, settings.backend)
    });
    if NEVER_MEASURES || !fork::is_own_process() || backend == Backend::Cpu {
        return;
    }
    RUN_NS.store(nanoseconds(run), Relaxed);
    let is_wanted = run.or(session).is_some() || WINDOW_NS.load(Relaxed) > 0;
    if !is_wanted || HAS_FAILED.load(Relaxed) || !switch::is_on_or_held() {
        return;
    }
    if THREAD.ensure_started("there are no samples of the GPU") {
        THREAD.wake();
    }
}

/// Sets the interval for the windows that are open; `None` if no session wants samples. A window begins and ends with a
/// sample.
pub(crate) fn want(interval: Option<Duration>) {
    let interval = nanoseconds(interval);
    let before = WINDOW_NS.swap(interval, Relaxed);
    if before.max(interval) > 0 {
        ASKED.fetch_add(1, Relaxed);
        THREAD.wake();
    }
}

/// Notes that a window opened at a time in ticks.
pub(crate) fn window_opened(at: u64) {
    energy::cut(at);
}

/// A sample that was asked for at the end of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosingSample(u64);

/// Asks for a sample at the end of a window, which was at a time in ticks: it has the energy of the window's last part.
/// Returns `None` if no samples are taken.
pub(crate) fn window_closed(at: u64) -> Option<ClosingSample> {
    energy::cut(at);
    interval()?;
    // Before the call: the sampler that sees the number takes a sample after the end.
    let asked = ASKED.fetch_add(1, Release) + 1;
    THREAD.wake();
    Some(ClosingSample(asked))
}

impl ClosingSample {
    /// Returns `true` if the sample is stored, or is not to be waited for: a call of NVML has lasted too long, or the
    /// sampler has ended.
    pub(crate) fn has_come(self) -> bool {
        DONE.load(Acquire) >= self.0
            || HAS_FAILED.load(Relaxed)
            || STOPPED.load(Relaxed)
            || !THREAD.is_running()
            || has_sensor_hung()
    }
}

/// Returns `true` if the call in progress has lasted as long as the end of the program would wait for it.
fn has_call_hung() -> bool {
    call_in_progress().is_some_and(|(_, took_ns)| Duration::from_nanos(took_ns) >= PATIENCE)
}

/// Returns `true` if a call of a sample has lasted that long. NVML takes longer to open its devices, once: a window waits for
/// that within its own limit.
fn has_sensor_hung() -> bool {
    let call = call_in_progress();
    call.is_some_and(|(call, _)| !is_opening(call)) && has_call_hung()
}

/// Returns `true` if a call belongs to those that come before all samples.
fn is_opening(call: u64) -> bool {
    [Call::Initialise, Call::Devices]
        .iter()
        .any(|opening| *opening as u64 == call)
}

/// Takes a sample now, and waits for it with a limit: the last one of the program would be missing otherwise.
pub(crate) fn last_sample() {
    let is_on = interval().is_some() && THREAD.is_running() && !HAS_FAILED.load(Relaxed);
    if !is_on || IS_LATE.load(Relaxed) || !fork::is_own_process() || STOPPED.load(Relaxed) {
        return;
    }
    IS_LAST.store(true, Relaxed);
    let asked = ASKED.fetch_add(1, Release) + 1;
    THREAD.wake();
    let is_done = wait_until(|| DONE.load(Acquire) >= asked || HAS_FAILED.load(Relaxed));
    IS_LATE.store(!is_done, Relaxed);
}

/// Ends sampling. Waits until the call in progress has returned, with a limit, since the driver's exit handler is next.
pub(crate) fn shut_down() {
    STOPPED.store(true, SeqCst);
    if fork::is_own_process() {
        THREAD.wake();
        wait_until(|| IN_CALL.load(SeqCst) == 0);
    }
}

/// Waits until something is done, with a limit, and not for a call that has lasted as long already. Returns `true` if it is
/// done.
fn wait_until(is_done: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if is_done() {
            return true;
        }
        if has_call_hung() || began.elapsed() >= PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of the call of NVML in progress, and how long it has lasted, in nanoseconds.
fn call_in_progress() -> Option<(u64, u64)> {
    let call = IN_CALL.load(SeqCst).checked_sub(1)?;
    let began = CALL_BEGAN.load(Relaxed);
    Some((call, now_ns().saturating_sub(began)))
}

/// Returns all samples since sampling began, and the energy of all names. Waits for no thread and no driver.
pub(crate) fn samples() -> GpuSamples {
    let samples = STORE.lock().snapshot(interval_ns_now());
    completed(samples, None)
}

/// Returns the samples of a window, from the last one before `opened` to the first one after `closed`, in nanoseconds
/// since the Unix epoch, and the energy between these times, which are `ticks` too. `session` is the interval that its
/// session asked for. Waits for no thread and no driver.
pub(crate) fn samples_between(
    session: Option<Duration>,
    (opened, closed): (i64, i64),
    ticks: (u64, u64),
) -> GpuSamples {
    let interval_ns = Some(shorter(RUN_NS.load(Relaxed), nanoseconds(session)));
    let interval_ns = interval_ns
        .filter(|ns| *ns > 0)
        .unwrap_or_else(interval_ns_now);
    let samples = STORE.lock().between(interval_ns, (opened, closed));
    let mut samples = completed(samples, Some(ticks));
    let [since, took] = [&OPENED[0], &OPENED[1]].map(|known| known.load(Relaxed));
    let is_late = i64::try_from(since).is_ok_and(|since| since > closed);
    if is_late && samples.devices.is_empty() {
        samples.notes.push(format!(
            "NVML took {:.1} s to open the devices, until after the window: it has no samples of the GPU",
            took as f64 / 1e9
        ));
    }
    samples
}

/// Adds what the store does not have.
fn completed(mut samples: GpuSamples, between: Option<(u64, u64)>) -> GpuSamples {
    for device in &mut samples.devices {
        device.energy = energy::of_device(&device.device.uuid, between);
    }
    samples.notes.extend(hanging_call(between.is_some()));
    samples
}

/// Says that samples are missing since a call has not returned: at once for a window, which has not waited for it.
fn hanging_call(is_for_window: bool) -> Option<String> {
    let (call, took) = call_in_progress()?;
    let is_long = if is_for_window {
        is_opening(call) || Duration::from_nanos(took) >= PATIENCE
    } else {
        took > HANGS_NS
    };
    is_long.then(|| {
        let function = Call::ALL
            .into_iter()
            .find(|known| *known as u64 == call)
            .map_or("NVML", |call| call.names().0);
        format!(
            "{function} has not returned for {:.1} s: there are no samples of the GPU since then",
            took as f64 / 1e9
        )
    })
}

/// Says which call is in progress.
struct Progress;

impl Observer for Progress {
    fn begins(&self, call: Call) -> bool {
        CALL_BEGAN.store(now_ns(), Relaxed);
        IN_CALL.store(call as u64 + 1, SeqCst);
        let may_call = !STOPPED.load(SeqCst);
        if !may_call {
            self.ends();
        }
        may_call
    }

    fn ends(&self) {
        IN_CALL.store(0, SeqCst);
    }

    fn has_ended(&self) -> bool {
        STOPPED.load(SeqCst)
    }
}

/// Makes calls that belong together, unless sampling has ended.
fn watched<T>(call: Call, calls: impl FnOnce() -> T) -> Option<T> {
    Progress.begins(call).then(|| {
        let result = calls();
        Progress.ends();
        result
    })
}

fn nanoseconds(interval: Option<Duration>) -> u64 {
    interval.map_or(0, |interval| {
        u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Returns the time between samples in nanoseconds; 0 if no samples are taken.
fn interval_ns_now() -> u64 {
    shorter(RUN_NS.load(Relaxed), WINDOW_NS.load(Relaxed))
}

/// Returns the shorter of two intervals; 0 stands for none.
fn shorter(first: u64, second: u64) -> u64 {
    if first == 0 || second == 0 {
        first.max(second)
    } else {
        first.min(second)
    }
}

fn interval() -> Option<Duration> {
    Some(interval_ns_now())
        .filter(|ns| *ns > 0)
        .map(Duration::from_nanos)
}

fn now_ns() -> u64 {
    u64::try_from(unix_ns(SystemTime::now())).unwrap_or(0)
}

/// The sampler's thread.
fn run() {
    let mut sampler = None;
    let mut last: Option<Instant> = None;
    let mut taken: Option<Instant> = None;
    loop {
        THREAD.clear_wakeup();
        if STOPPED.load(SeqCst) || fork::is_child() {
            return;
        }
        // Before the sample, so that a request during the sample gets another one.
        let asked = ASKED.load(Acquire);
        let is_asked = asked > DONE.load(Relaxed);
        let is_last = is_asked && IS_LAST.swap(false, Relaxed);
        let pace = |known: &Option<Sampler>, of: fn(&Pace, Duration) -> Duration, wanted| {
            known.as_ref().map_or(wanted, |open| of(&open.pace, wanted))
        };
        // Windows may open and close more often than that.
        let shortest = pace(&sampler, Pace::for_windows, SHORTEST);
        let too_early = taken
            .filter(|_| is_asked && !is_last)
            .map(|taken| shortest.saturating_sub(taken.elapsed()))
            .filter(|left| !left.is_zero());
        // Read anew in each round, since a window may have opened that wants a shorter one.
        let interval = interval().map(|wanted| pace(&sampler, Pace::interval, wanted));
        let left = interval.map(|interval| {
            let since = last.map_or(Duration::MAX, |last| last.elapsed());
            interval.saturating_sub(since)
        });
        let is_due = left.is_some_and(|left| left.is_zero());
        if is_due {
            last = Some(Instant::now());
        }
        // While nothing is measured, nothing is sampled: the next sample has the energy of the whole pause.
        let is_wanted = is_due || (is_asked && too_early.is_none() && sampler.is_some());
        if is_wanted && switch::is_on_or_held() {
            taken = Some(Instant::now());
            let known = sampler.take().map_or_else(Sampler::open, Ok);
            match known {
                Ok(mut open) => {
                    open.sample(is_last);
                    sampler = Some(open);
                }
                Err(_) if STOPPED.load(SeqCst) => return,
                Err(reason) => {
                    fail(&reason);
                    return;
                }
            }
            own_cost::note_background();
        } else if is_last && let Some(open) = &mut sampler {
            // There is no last sample while nothing is measured, but the run ends all the same.
            open.decide_names();
        }
        if let Some(too_early) = too_early.filter(|_| !is_due) {
            thread::park_timeout(left.map_or(too_early, |left| left.min(too_early)));
            continue;
        }
        DONE.store(asked, Release);
        // The last window has closed: the next one must not begin with the energy of the pause.
        if let (None, Some(open)) = (interval, &mut sampler) {
            open.rest();
        }
        match left {
            // The sample took some of it.
            Some(left) if left.is_zero() => {
                let since = last.map_or(Duration::ZERO, |last| last.elapsed());
                let interval = interval.unwrap_or_default();
                thread::park_timeout(interval.saturating_sub(since));
            }
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

fn fail(reason: &str) {
    let note = format!("{reason}; there are no samples of the GPU");
    STORE.lock().note(note.clone());
    HAS_FAILED.store(true, Relaxed);
    diagnostics::warn_once(&note);
}

/// NVML and the devices.
struct Sampler {
    table: Table,
    devices: Vec<SampledDevice>,
    /// `true` once the program's devices are known, in the numbers of CUDA.
    is_matched: bool,
    pace: Pace,
}

impl Sampler {
    fn open() -> Result<Self, String> {
        let path = with_control(|control| control.settings.nvml_library.clone());
        let began = now_ns();
        let ended = || "sampling has ended".to_owned();
        let table = watched(Call::Initialise, || profiler_sensors::open(path.as_deref()));
        let table = table
            .ok_or_else(ended)?
            .map_err(|error| error.to_string())?;
        let devices = watched(Call::Devices, || profiler_sensors::devices(&table));
        let (devices, refused) = devices
            .ok_or_else(ended)?
            .map_err(|error| error.to_string())?;
        for refused in refused {
            STORE.lock().note(format!("{refused}: it has no samples"));
        }
        let devices = devices.into_iter().map(SampledDevice::new);
        let opened = now_ns();
        OPENED[1].store(opened.saturating_sub(began), Relaxed);
        OPENED[0].store(opened, Relaxed);
        Ok(Self {
            table,
            devices: devices.collect(),
            is_matched: false,
            pace: Pace::default(),
        })
    }

    /// Takes a sample of each device. If it is the last one, the processes are counted too.
    fn sample(&mut self, is_last: bool) {
        let was_matched = self.is_matched;
        self.match_devices();
        let mut slow = SlowCalls::default();
        let count_processes = is_last || (self.is_matched && !was_matched);
        for device in &mut self.devices {
            if STOPPED.load(SeqCst) {
                return;
            }
            if count_processes {
                watched(Call::Processes, || {
                    device.sensors.count_processes(&self.table);
                });
            }
            device.sample(&self.table, &Progress, &STORE);
            slow.add_all(device.sensors.take_slow_calls());
            // CUDA has a number for it, or the run ends without.
            if self.is_matched || is_last {
                device.decide_name();
            }
        }
        if let Some(note) = self.pace.sampled(slow, interval()) {
            STORE.lock().note(note.clone());
            diagnostics::warn_once(&note);
        }
    }

    /// Decides how the log names the devices.
    fn decide_names(&mut self) {
        self.devices.iter_mut().for_each(SampledDevice::decide_name);
    }

    /// Forgets what the next sample would be compared with.
    fn rest(&mut self) {
        self.devices.iter_mut().for_each(SampledDevice::rest);
        energy::pause();
    }

    /// Finds the program's devices by their UUIDs, once it has initialised CUDA: the order of NVML is another one, and
    /// the program may see fewer devices. The others are left out from then on.
    fn match_devices(&mut self) {
        if self.is_matched {
            return;
        }
        let uuids = watched(Call::Match, || {
            driver_library::driver().and_then(Driver::uuids)
        });
        let Some(uuids) = uuids.flatten() else {
            return;
        };
        self.is_matched = true;
        for device in &mut self.devices {
            let device = &mut device.sensors.device;
            device.ordinal = ordinal_of(&device.uuid, &uuids);
        }
        let is_used = |device: &SampledDevice| {
            let device = &device.sensors.device;
            // CUDA shows a part of it, which has a UUID of its own.
            device.ordinal.is_some() || device.is_mig
        };
        if self.devices.iter().any(is_used) {
            self.devices.retain(is_used);
            let uuids = self
                .devices
                .iter()
                .map(|device| device.sensors.device.uuid.as_str());
            let uuids: Vec<&str> = uuids.collect();
            STORE.lock().keep_devices(&uuids);
            energy::keep_devices(&uuids);
        } else {
            STORE.lock().note(
                "no device of NVML has the UUID of a device of CUDA: samples are those of all devices".to_owned(),
            );
        }
    }
}
