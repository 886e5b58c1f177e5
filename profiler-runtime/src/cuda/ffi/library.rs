//! Finds the driver's library, and says whether the driver may be called.
//!
//! A program that does not use CUDA must not pay for it: loading the library takes milliseconds, and initialising it
//! takes part of a second and memory on each device. So a measured call only looks whether the process has loaded the
//! library already. A stream or a setting is a reason to load it. Only [`status`] and
//! `PROFILER_BACKEND=cuda` initialise it.

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use profiler_cuda_sys::driver::{Code, DeviceProperties, Driver};
use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::{Lock, RaceCell};
use profiler_report::internal::RawStream;

use super::EventApi;
use super::status::Status;
use crate::config::{Backend, ImplicitStream};
use crate::switch::with_control;

/// The driver, once it has been found. Never unset: [`driver`] stops returning it.
static DRIVER: RaceCell<Driver> = RaceCell::new();
/// What is called once a driver has been found.
static WHEN_FOUND: RaceCell<fn()> = RaceCell::new();
/// Why there is no driver, if discovery has failed; or the result of initialising it.
static STATUS: Lock<Option<Status>> = Lock::new(None);
/// `true` once the driver must not be called any more.
static SHUT_DOWN: AtomicBool = AtomicBool::new(false);
/// `true` if discovery is useless: the settings forbid GPU times, or the library could not be loaded.
static DISCOVERY_FAILED: AtomicBool = AtomicBool::new(false);
/// `true` if the settings forbid GPU times. They may have changed after a driver was found.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);
/// `PROFILER_CUDA_STREAM`, as an [`ImplicitStream`].
static IMPLICIT_STREAM: AtomicU8 = AtomicU8::new(ImplicitStream::None as u8);

/// Returns the driver, if it has been found and may be called.
///
/// Returns `None` once the process exits, and in a forked process: CUDA does not work there, and a thread that does not
/// exist in the child may hold a lock of the driver forever.
#[inline]
pub(crate) fn driver() -> Option<&'static Driver> {
    DRIVER.get().filter(|_| !SHUT_DOWN.load(Relaxed))
}

/// Has [`driver`] return `None` from now on.
///
/// `Relaxed` is enough for measured threads: one that has read the flag just before may still call the driver while the
/// process exits, as the program's own CUDA calls on that thread may. The resolver, for which the profiler can wait,
/// goes through the `ExitGate` too.
pub(crate) fn shut_down() {
    SHUT_DOWN.store(true, Relaxed);
}

/// Returns `true` if the process exits or is a forked one. The queues that threads share must not be used then: in a
/// forked process, a thread that was in the middle of a push or a pop does not exist to complete it.
pub(crate) fn is_shut_down() -> bool {
    SHUT_DOWN.load(Relaxed) || fork::is_child()
}

fn shut_down_in_forks() {
    extern "C" fn in_child() {
        shut_down();
    }
    // SAFETY: the handler stores one flag and does not unwind. If it is not registered, `is_shut_down` and the program's
    // own CUDA errors remain.
    unsafe { fork::run_in_children(in_child) };
}

/// Why the driver is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiscoveryReason {
    /// A measured call. The library is used if the process has loaded it.
    MeasuredCall,
    /// A stream or a setting. The library is loaded.
    ExplicitRequest,
    /// A call of [`status`]. The library is loaded, and nothing is printed.
    StatusQuery,
}

/// The settings that matter here.
#[derive(Clone, Debug)]
struct CudaSettings {
    backend: Backend,
    path: Option<std::path::PathBuf>,
    stream: ImplicitStream,
}

fn settings() -> CudaSettings {
    with_control(|control| CudaSettings {
        backend: control.settings.backend,
        path: control.settings.cuda_library.clone(),
        stream: control.settings.cuda_stream,
    })
}

/// Returns `true` if a setting asks for GPU times.
pub(crate) fn is_asked_for() -> bool {
    let settings = settings();
    let has_setting = settings.path.is_some() || settings.stream != ImplicitStream::None;
    settings.backend == Backend::Cuda || has_setting
}

/// Applies a changed backend setting.
pub(crate) fn apply_backend(backend: Backend) {
    DISCOVERY_FAILED.store(false, Relaxed);
    FORBIDDEN.store(backend == Backend::Cpu, Relaxed);
}

/// Returns the default stream of the driver that `PROFILER_CUDA_STREAM` asks for; the legacy one if that is to be the stream of
/// libtorch, which may have it.
#[inline]
pub(crate) fn implicit_stream() -> Option<RawStream> {
    const NONE: u8 = ImplicitStream::None as u8;
    const PER_THREAD: u8 = ImplicitStream::PerThread as u8;
    match IMPLICIT_STREAM.load(Relaxed) {
        NONE => None,
        PER_THREAD => Some(RawStream::PER_THREAD),
        _ => Some(RawStream::LEGACY),
    }
}

/// Returns `Some` if `PROFILER_CUDA_STREAM` asks for the stream of libtorch: whether that may be the legacy default stream.
#[inline]
pub(crate) fn asks_libtorch() -> Option<bool> {
    const LIBTORCH: u8 = ImplicitStream::Libtorch as u8;
    const LIBTORCH_OR_LEGACY: u8 = ImplicitStream::LibtorchOrLegacy as u8;
    match IMPLICIT_STREAM.load(Relaxed) {
        LIBTORCH => Some(false),
        LIBTORCH_OR_LEGACY => Some(true),
        _ => None,
    }
}

/// Returns `true` if GPU times are taken.
pub(crate) fn is_in_use() -> bool {
    driver().is_some() && !FORBIDDEN.load(Relaxed)
}

/// Returns `true` if discovery may still find a driver.
pub(crate) fn may_be_found() -> bool {
    driver().is_none() && !DISCOVERY_FAILED.load(Relaxed) && !is_shut_down()
}

/// Has the thread that finds a driver call `when_found`, which does not wait: for the module that records kernels once the
/// program uses CUDA. Only the first function is kept.
pub(crate) fn when_found(when_found: fn()) {
    WHEN_FOUND.get_or_init(|| when_found);
}

/// Returns the driver, and looks for it if it has not been found yet. Returns `None` if there is none, or if the
/// settings forbid GPU times.
#[inline]
pub(crate) fn find(reason: DiscoveryReason) -> Option<&'static Driver> {
    match driver() {
        Some(driver) => (!FORBIDDEN.load(Relaxed)).then_some(driver),
        None => find_first(reason),
    }
}

/// [`find`] before a driver has been found, or after the process began to exit.
#[inline(never)]
fn find_first(reason: DiscoveryReason) -> Option<&'static Driver> {
    // A measured call from within the profiler, whose locks its thread may hold. One that decides has entered it itself.
    let is_refused = reason == DiscoveryReason::ExplicitRequest && ReentrancyGuard::is_entered();
    if may_be_found() && !is_refused {
        return discover(reason);
    }
    driver().filter(|_| is_in_use())
}

#[cold]
fn discover(reason: DiscoveryReason) -> Option<&'static Driver> {
    let settings = settings();
    if settings.backend == Backend::Cpu {
        DISCOVERY_FAILED.store(true, Relaxed);
        return None;
    }
    let is_configured = settings.backend == Backend::Cuda || settings.path.is_some();
    let load = is_configured || reason != DiscoveryReason::MeasuredCall;
    open_once(&settings, load);
    if let Some(driver) = driver() {
        // A user who set PROFILER_BACKEND=cuda is warned if the driver finds no device.
        let is_required =
            settings.backend == Backend::Cuda && reason != DiscoveryReason::StatusQuery;
        if is_required && !initialise(driver).is_ready() {
            warn();
        }
        // Call sites decide again, and may take GPU times now.
        with_control(crate::switch::Control::new_generation);
        if let Some(when_found) = WHEN_FOUND.get() {
            when_found();
        }
    } else if load {
        DISCOVERY_FAILED.store(true, Relaxed);
        // A status query returns the reason to its caller instead.
        if reason != DiscoveryReason::StatusQuery {
            warn();
        }
    }
    driver()
}

/// Opens the library, unless that has succeeded or failed before. Stores the driver, or the reason of the failure.
fn open_once(settings: &CudaSettings, load: bool) {
    // A measured allocator would re-enter discovery, and wait for the lock of `STATUS`.
    let _guard = ReentrancyGuard::try_enter();
    let mut known = STATUS.lock();
    // Each attempt may take milliseconds, so a failed one is not repeated.
    let has_failed = matches!(
        *known,
        Some(Status::NoLibrary { .. } | Status::TooOld { .. })
    );
    if driver().is_some() || has_failed {
        return;
    }
    match open(settings, load) {
        Ok(driver) => {
            shut_down_in_forks();
            // Before the driver is published, so that no measured call finds the driver without the setting.
            IMPLICIT_STREAM.store(settings.stream as u8, Relaxed);
            DRIVER.get_or_init(|| driver);
        }
        // The program may load it later.
        Err(Status::NotLoaded) => {}
        Err(failure) => *known = Some(failure),
    }
}

/// Prints why there are no GPU times, once for each reason.
fn warn() {
    let known = STATUS.lock().clone();
    if let Some(reason) = known {
        diagnostics::warn_once(&format!("{reason}; GPU times are left out"));
    }
}

/// The devices, as they were when the driver could still be asked.
static READY: RaceCell<Status> = RaceCell::new();
/// Their properties.
static PROPERTIES: RaceCell<Vec<DeviceProperties>> = RaceCell::new();

/// Returns the status as far as it is known, without loading or initialising anything.
pub(crate) fn known_status() -> Status {
    if settings().backend == Backend::Cpu {
        return Status::Off;
    }
    if let Some(known) = STATUS.lock().clone() {
        return known;
    }
    match driver() {
        // An uninitialised driver answers with an error.
        Some(driver) => match driver.devices() {
            Ok(devices) if !devices.is_empty() => {
                READY.get_or_init(|| ready(driver, devices)).clone()
            }
            // The driver may have shut down before the profiler.
            _ => READY.get().cloned().unwrap_or(Status::NotInitialised),
        },
        None => READY.get().cloned().unwrap_or(Status::NotLoaded),
    }
}

/// Saves the list of devices while the driver can be asked.
pub(crate) fn note_devices(driver: &Driver) {
    if let Ok(devices) = driver.devices() {
        PROPERTIES.get_or_init(|| driver.properties(devices.len()));
        READY.get_or_init(|| ready(driver, devices));
    }
}

/// Returns the properties of the devices by ordinal; none if the program has not initialised the driver, or if that cannot be
/// asked any more.
pub(crate) fn device_properties() -> &'static [DeviceProperties] {
    if PROPERTIES.get().is_none()
        && let Some(driver) = driver()
    {
        note_devices(driver);
    }
    PROPERTIES.get().map_or(&[], Vec::as_slice)
}

fn ready(driver: &Driver, devices: Vec<String>) -> Status {
    Status::Ready {
        devices,
        driver_version: driver.version(),
    }
}

/// Looks for the CUDA driver, initialises it and returns its state.
///
/// A program that uses CUDA initialises the driver anyway. In other programs this call may take a fraction of a second
/// and some memory on each device.
///
/// # Examples
///
/// ```
/// println!("{}", profiler_runtime::cuda::status());
/// ```
#[must_use]
pub fn status() -> Status {
    if settings().backend == Backend::Cpu {
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
    *STATUS.lock() = Some(found.clone());
    found
}

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
fn open(settings: &CudaSettings, load: bool) -> Result<Driver, Status> {
    use profiler_cuda_sys::{driver, library::OpenError};

    // SAFETY: the library is NVIDIA's by its name, or the user says so by `PROFILER_CUDA_LIBRARY`. The program would run
    // the same initialisers to use it.
    let library = unsafe { driver::open(settings.path.as_deref(), load) };
    let library = library.map_err(|error| match error {
        OpenError::NotLoaded => Status::NotLoaded,
        OpenError::Failed(reason) => Status::NoLibrary { reason },
    })?;
    // Never closed: the driver's functions are called until the process ends.
    let library = ManuallyDrop::new(library);
    // SAFETY: the library is the one that the system knows as the CUDA driver, or the one that the user has named as
    // such. It is never closed.
    unsafe { Driver::read(|symbol| library.symbol(symbol)) }.map_err(|symbol| Status::TooOld {
        symbol: symbol.to_owned(),
    })
}

#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
fn open(_settings: &CudaSettings, _load: bool) -> Result<Driver, Status> {
    Err(Status::NotBuilt)
}
