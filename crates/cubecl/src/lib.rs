//! Has kernels of [CubeCL] and [Burn] stand at the measured functions that ask for them.
//!
//! CubeCL launches from a thread of its own, where no function of the program is open: without this crate, kernels belong to no
//! function. One line in `main` changes that, and no line where kernels are asked for:
//!
//! ```no_run
//! profiler_cubecl::observe();
//! // …measured functions, which launch kernels of CubeCL or call Burn
//! ```
//!
//! It needs CUPTI, and a window that has kernels (`PROFILER_TRACE`, or a `Profile` with
//! [`kernels`](profiler_runtime::session::ProfileBuilder::kernels)). [`Observer::device_times`] is for programs without CUPTI.
//! [The guide][guide] says what else there is to write for Burn with fusion, and for programs with several devices.
//!
//! # How
//!
//! CubeCL tells an observer of each launch before it queues it for its thread, the runner. This crate queues a task just before,
//! which notes on the runner who asks. Both tasks carry the [`StreamId`] of the thread that asks, and run in this order; when the
//! runner launches a kernel under that id, the profiler's [launch hook](profiler_runtime::cuda::set_launch_hook) takes the
//! note. So nothing is counted, compared or guessed. The note of a launch that CubeCL discards stays until that of the next one
//! under its id replaces it, which comes before the kernel of the next one.
//!
//! No launch waits for a device, and no call of CUDA is added. While a session records kernels, the thread that asks queues a
//! task more for each launch and each device named. The task takes a place in CubeCL's queue, which has 32: a thread that asks
//! faster than the runner launches meets a full queue earlier. At other times, a launch costs two loads of atomics more.
//!
//! The thread waits for that place inside of CubeCL's call of the observer, under a lock that installing or dropping a
//! `LaunchObservation` takes for itself. So a program must not install another one while a session records kernels: should a
//! runner ask for a launch then (CubeCL tunes itself there), it waits for the lock, the lock for the thread, and the thread for
//! the runner.
//!
//! # What is exact
//!
//! - Each kernel that a thread asks for, if no other thread uses its [`StreamId`]. CubeCL gives each thread one. Of two threads
//!   that share an id (`StreamPolicy::Single`) and ask at the same moment, one may have the other's kernel, and the other none.
//! - Copies and fills are not announced. They belong to the innermost scope of the runner, which has none. Kernels of a replayed
//!   graph are announced when they are captured, and belong to no function either.
//! - Kernels with which CubeCL tunes itself (autotune) belong to no function: its runner asks for them, and nothing says for
//!   whom.
//! - Burn without fusion: each kernel. With fusion, Burn decides on a thread of its own which kernels there are, and one kernel is
//!   what several functions have asked for: all stand in one row, `fused by Burn`.
//! - Kernels that were asked for before the session recorded, and launched after, belong to no scope, as [`Counts::unknown`] says.
//! - CubeCL has one observer at a time. While another one is installed, kernels belong to no function.
//!
//! [CubeCL]: https://docs.rs/cubecl
//! [Burn]: https://docs.rs/burn
//! [guide]: https://docs.rs/profiler-runtime/latest/profiler_runtime/manual/guide/frameworks/
//! [`StreamId`]: cubecl_environment::stream::StreamId

mod adapter;
mod counts;
mod runner;
mod times;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use cubecl_common::device::DeviceId;
use cubecl_common::device_handle::DeviceHandle;
use cubecl_runtime::logging::LaunchObservation;
use profiler_host::diagnostics::warn_once;
use profiler_runtime::cuda;

use adapter::Adapter;
pub use counts::{Counts, counts};

/// Has the kernels that CubeCL launches on CUDA device 0 stand at the measured functions that ask for them, from now on.
///
/// Returns `false`, and changes nothing for kernels, if CubeCL is observed already, or if the program has a
/// [launch hook](profiler_runtime::cuda::set_launch_hook) of its own. [`Observer`] has options.
///
/// It needs no device, and calls nothing of CUDA. It starts CubeCL's thread for device 0: in a program that never uses that
/// device, this thread stays idle (CubeCL has it look for work several thousand times a second), and nothing else changes.
///
/// # Examples
///
/// ```no_run
/// // In `main`, after `profiler_runtime::init`.
/// profiler_cubecl::observe();
/// ```
#[allow(clippy::must_use_candidate, reason = "a program goes on without it")]
pub fn observe() -> bool {
    Observer::new().install()
}

/// Options of [`observe`].
///
/// # Examples
///
/// ```no_run
/// use profiler_cubecl::Observer;
///
/// Observer::new().devices([0, 1]).install();
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is observed before `install`"]
pub struct Observer {
    devices: Vec<u16>,
    device_times: bool,
}

impl Default for Observer {
    fn default() -> Self {
        Self {
            devices: vec![0],
            device_times: false,
        }
    }
}

impl Observer {
    /// Returns the options of [`observe`]: device 0, and kernels by CUPTI.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the CUDA devices that the program launches on, by their numbers in CubeCL. Kernels on others belong to no function.
    ///
    /// Each has a runner, which CubeCL starts now if it has not yet, so list no more than are used. A launch is announced to all
    /// of them.
    pub fn devices(mut self, devices: impl IntoIterator<Item = u16>) -> Self {
        self.devices = devices.into_iter().collect();
        self.devices.sort_unstable();
        self.devices.dedup();
        self
    }

    /// Has CubeCL time each kernel, for programs without CUPTI: the times are reported to the functions that ask, with
    /// [`Handle::report_device_time`](profiler_runtime::Handle::report_device_time). The default is `false`.
    ///
    /// *The price.* The thread that asks waits until the runner has launched the kernel, once for each launch, also while nothing
    /// is recorded. It does not wait for the device: a thread of this crate reads the times. A time is that between two events
    /// around the launch, which is longer than the kernel.
    ///
    /// A window that has kernels leaves these times out, but summaries count them: leave it off with CUPTI.
    pub fn device_times(mut self, device_times: bool) -> Self {
        self.device_times = device_times;
        self
    }

    /// Observes the launches of CubeCL, until the process ends.
    ///
    /// An observer of CubeCL that the program has installed is replaced, once: a program must not install another one while a
    /// session records kernels, as [the crate's page](crate#how) says. Returns `false` as [`observe`] does. If that is because of
    /// the program's launch hook, [`device_times`](Self::device_times) works nevertheless.
    #[allow(clippy::must_use_candidate, reason = "a program goes on without it")]
    pub fn install(self) -> bool {
        static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
        static OBSERVATION: OnceLock<LaunchObservation> = OnceLock::new();
        if IS_INSTALLED.swap(true, Relaxed) {
            return false;
        }
        let runner = |index_id| {
            DeviceHandle::new(DeviceId {
                type_id: CUDA,
                index_id,
            })
        };
        // Before the hook, which would take these runners for those of other devices.
        let mut runners: Box<[_]> = self.devices.into_iter().map(runner).collect();
        let is_hooked = cuda::set_launch_hook(runner::asker);
        if !is_hooked {
            warn_once("the program has a launch hook, so kernels of CubeCL belong to no function");
            runners = Box::default();
        }
        let times = self.device_times.then(times::start).flatten();
        if !is_hooked && times.is_none() {
            return false;
        }
        let adapter = Adapter { runners, times };
        // Never dropped: CubeCL would wait for the threads that are being told of a launch.
        let _ = OBSERVATION.set(LaunchObservation::new(Arc::new(adapter)));
        is_hooked
    }
}

/// The number that CubeCL gives to CUDA's devices, as the kind of a device.
const CUDA: u16 = 0;
