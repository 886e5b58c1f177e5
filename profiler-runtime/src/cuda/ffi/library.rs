//! Which driver library there is, found when something speaks for CUDA.
//!
//! A program that has nothing to do with CUDA must not pay for it: to load the library takes
//! milliseconds, to initialise it a part of a second and memory on each device. So by itself the
//! profiler only looks whether the program has the library already, and never initialises it.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::EventApi;
use super::code::Code;
use super::driver::Driver;
use crate::clock::clock;
use crate::config::{Backend, ImplicitStream};
use crate::cuda::status::Status;
use crate::cuda::stream::default;
use crate::diagnostics;
use crate::process::fork;
use crate::switch::with_control;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, RaceCell};

static DRIVER: RaceCell<Driver> = RaceCell::new();
/// Why there is no driver, where somebody has looked; or what the driver said to being initialised.
static STATUS: Lock<Option<Status>> = Lock::new(None);

/// Whether the driver is not to be called any more.
static SHUT_DOWN: AtomicBool = AtomicBool::new(false);

/// The driver, once it was found; none when the process ends, and none in a forked process, where it works no more,
/// and where a lock of its own may be held for ever by a thread of ours that is not there.
#[inline]
pub(crate) fn driver() -> Option<&'static Driver> {
    DRIVER.get().filter(|_| !SHUT_DOWN.load(Relaxed))
}

/// Has nobody begin a call of the driver from now on, nor look for it.
pub(crate) fn shut_down() {
    SHUT_DOWN.store(true, Relaxed);
}

/// Returns whether the driver is called no more: the process ends, or is a forked one. Nothing is taken from queues
/// that threads share from then on, or put there: a thread that was in the middle of that may not exist here.
pub(crate) fn is_shut_down() -> bool {
    SHUT_DOWN.load(Relaxed) || fork::is_child()
}

#[cfg(unix)]
fn note_forks() {
    extern "C" fn forked() {
        shut_down();
    }
    // SAFETY: what is called in the forked process is a function of this program, which stores one number and
    // does not unwind. Where the system takes no more of them, it is as if there were none.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

#[cfg(not(unix))]
fn note_forks() {}

/// What speaks for CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscoveryReason {
    /// Nothing but that a function is measured: the library is used if the process has it.
    MeasuredCall,
    /// A stream, or the user's word: the library is loaded.
    ExplicitRequest,
    /// A question what there is: the same, and nothing is said.
    StatusQuery,
}

/// What the settings say.
#[derive(Clone, Debug)]
struct Wanted {
    backend: Backend,
    path: Option<std::path::PathBuf>,
    stream: ImplicitStream,
}

fn wanted() -> Wanted {
    with_control(|control| Wanted {
        backend: control.settings.backend,
        path: control.settings.cuda_library.clone(),
        stream: control.settings.cuda_stream,
    })
}

fn status() -> MutexGuard<'static, Option<Status>> {
    STATUS.lock()
}

/// Whether there is no use in looking: the settings forbid it, or the library could not be loaded.
static DISCOVERY_FAILED: AtomicBool = AtomicBool::new(false);

/// Whether GPU times were forbidden after a driver was found.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// The settings have changed.
pub(crate) fn apply_backend(backend: Backend) {
    DISCOVERY_FAILED.store(false, Relaxed);
    FORBIDDEN.store(backend == Backend::Cpu, Relaxed);
}

/// Whether GPU times are taken.
pub(crate) fn is_in_use() -> bool {
    driver().is_some() && !FORBIDDEN.load(Relaxed)
}

/// Looks for the driver; none where the settings forbid it or it cannot be had.
pub(crate) fn find(evidence: DiscoveryReason) -> Option<&'static Driver> {
    if driver().is_some() || DISCOVERY_FAILED.load(Relaxed) || is_shut_down() {
        return driver().filter(|_| is_in_use());
    }
    discover(evidence)
}

#[cold]
fn discover(evidence: DiscoveryReason) -> Option<&'static Driver> {
    let wanted = wanted();
    if wanted.backend == Backend::Cpu {
        DISCOVERY_FAILED.store(true, Relaxed);
        return None;
    }
    let stated = wanted.backend == Backend::Cuda || wanted.path.is_some();
    let load = stated || evidence != DiscoveryReason::MeasuredCall;
    {
        // What is allocated meanwhile must not be measured: it would come back here.
        let _busy = ReentrancyGuard::try_enter();
        let mut known = status();
        // What could not be loaded once is not tried again: each try may take milliseconds.
        if driver().is_none()
            && !matches!(
                *known,
                Some(Status::NoLibrary { .. } | Status::TooOld { .. })
            )
        {
            match open(&wanted, load) {
                Ok(driver) => {
                    note_forks();
                    default::set_implicit(wanted.stream);
                    DRIVER.get_or_init(|| driver);
                }
                // It may be loaded later.
                Err(Status::NotLoaded) => {}
                Err(failure) => *known = Some(failure),
            }
        }
    }
    if let Some(driver) = driver() {
        // Who asked for GPU times in so many words is told where there is nothing to take them on.
        let stated = wanted.backend == Backend::Cuda && evidence != DiscoveryReason::StatusQuery;
        if stated && !initialise(driver).is_ready() {
            warn();
        }
        // Every site decides again, and may now take GPU time.
        with_control(crate::switch::Control::new_generation);
    } else if load {
        DISCOVERY_FAILED.store(true, Relaxed);
        // Who asked what there is gets an answer.
        if evidence != DiscoveryReason::StatusQuery {
            warn();
        }
    }
    driver()
}

/// Looks for a library that the program has loaded, when a call site decides; not too often, since a
/// library that is not there is looked for in many folders.
#[cold]
pub(crate) fn scan_loaded() {
    const GAP_NS: f64 = 1e6;
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (now, last) = (clock().since_origin(), LAST.load(Relaxed));
    if last == 0 || clock().nanoseconds(now.saturating_sub(last) as f64) > GAP_NS {
        LAST.store(now.max(1), Relaxed);
        find(DiscoveryReason::MeasuredCall);
    }
}

/// What stands in the way, once and in words, for those who did not ask.
fn warn() {
    let known = status().clone();
    if let Some(reason) = known {
        diagnostics::warn_once(&format!("{reason}; GPU times are left out"));
    }
}

/// How often the process is asked for the library by functions that are merely measured.
const PROBES: u32 = 11;
static PROBED: AtomicU32 = AtomicU32::new(0);
static NEXT_PROBE: AtomicU64 = AtomicU64::new(0);
static PROBING: AtomicBool = AtomicBool::new(true);

/// Whether functions that are measured go on asking, so that a program that loads the library a little
/// after its first measured call is noticed.
pub(crate) fn is_discovering() -> bool {
    PROBING.load(Relaxed)
        && !DISCOVERY_FAILED.load(Relaxed)
        && driver().is_none()
        && !is_shut_down()
}

/// Asks whether the process has the library by now: a few times within the first seconds, at growing
/// distances, since a library that is not there is looked for in many folders.
#[cold]
pub(crate) fn poll_discovery() {
    let now = clock().since_origin();
    let due = NEXT_PROBE.load(Relaxed);
    if now < due {
        return;
    }
    let probes = PROBED.load(Relaxed);
    let next = now + clock().in_ticks(Duration::from_millis(1 << probes.min(20)));
    if NEXT_PROBE
        .compare_exchange(due, next, Relaxed, Relaxed)
        .is_err()
    {
        return;
    }
    PROBED.store(probes + 1, Relaxed);
    if find(DiscoveryReason::MeasuredCall).is_none()
        && probes + 1 >= PROBES
        && PROBING.swap(false, Relaxed)
    {
        // From now on call sites need not ask.
        with_control(crate::switch::Control::new_generation);
    }
}

/// Asks [`poll_discovery`] while it may find something.
pub(crate) fn poll_discovery_if_active() {
    if is_discovering() {
        poll_discovery();
    }
}

/// What is known without touching a device.
pub(crate) fn known_status() -> Status {
    let wanted = wanted();
    if wanted.backend == Backend::Cpu {
        return Status::Off;
    }
    if let Some(known) = status().clone() {
        return known;
    }
    match driver() {
        // Fails harmlessly where the program has not initialised it.
        Some(driver) => match driver.devices() {
            Ok(devices) if !devices.is_empty() => {
                READY.get_or_init(|| ready(driver, devices)).clone()
            }
            // It may have ended before us.
            _ => READY.get().cloned().unwrap_or(Status::NotInitialised),
        },
        None => READY.get().cloned().unwrap_or(Status::NotLoaded),
    }
}

/// What was found of devices, for when the driver has ended.
static READY: RaceCell<Status> = RaceCell::new();

/// Notes what devices there are, while the driver can tell.
pub(crate) fn note_devices(driver: &Driver) {
    if let Ok(devices) = driver.devices() {
        READY.get_or_init(|| ready(driver, devices));
    }
}

fn ready(driver: &Driver, devices: Vec<String>) -> Status {
    Status::Ready {
        devices,
        driver_version: driver.version(),
    }
}

/// Finds out all there is to know: loads the library and initialises it.
pub(crate) fn detect() -> Status {
    if wanted().backend == Backend::Cpu {
        return Status::Off;
    }
    let Some(driver) = find(DiscoveryReason::StatusQuery) else {
        return known_status();
    };
    initialise(driver)
}

fn initialise(driver: &Driver) -> Status {
    let found = match driver.init().ok().and_then(|()| driver.devices()) {
        Ok(devices) if devices.is_empty() => Status::NoDevice,
        Ok(devices) => ready(driver, devices),
        Err(Code::NO_DEVICE) => Status::NoDevice,
        Err(code) => Status::InitFailed {
            code: code.0,
            name: driver.name_of(code),
        },
    };
    *status() = Some(found.clone());
    found
}

#[cfg(feature = "cuda")]
fn open(wanted: &Wanted, load: bool) -> Result<Driver, Status> {
    use std::ffi::CStr;

    let library = super::dynamic::open(wanted.path.as_deref(), load)?;
    // Never closed: the table is used to the end of the process.
    let library = std::mem::ManuallyDrop::new(library);
    let find = |symbol: &CStr| super::dynamic::symbol(&library, symbol);
    // SAFETY: the library is the one that the system calls the CUDA driver, or that the user named as
    // such; it is never closed.
    unsafe { Driver::read(find) }.map_err(|symbol| Status::TooOld {
        symbol: symbol.to_owned(),
    })
}

#[cfg(not(feature = "cuda"))]
#[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
fn open(_wanted: &Wanted, _load: bool) -> Result<Driver, Status> {
    Err(Status::NotBuilt)
}
