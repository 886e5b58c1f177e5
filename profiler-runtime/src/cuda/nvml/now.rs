//! The sensors at one moment, when the program asks.

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
use profiler_cuda_sys::driver::Driver;
use profiler_sensors::{GpuState, SensorError};

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
use crate::cuda::ffi::library::{self, DiscoveryReason};
use crate::switch::with_control;

/// Reads the sensors of all GPUs of the system now, as `nvidia-smi` prints them: memory, load, power, temperature and clocks.
///
/// Nothing else of the profiler is needed, and nothing is recorded: `PROFILER_GPU_SAMPLES` samples at intervals. The library is
/// the one in `PROFILER_NVML_LIBRARY`, or the system's. [`GpuDevice::ordinal`](crate::report::GpuDevice::ordinal) is known once
/// the program has initialised CUDA. `profiler smi` prints the same in a terminal.
///
/// The calls of NVML are made on the calling thread. They take milliseconds, the first time up to a second, hold a lock of
/// the driver for which launches wait, and may not return if a device is lost. In a build with the feature `strip`, the sensors
/// are read all the same.
///
/// # Errors
///
/// Returns an error if NVML cannot be loaded or refuses to work, if there is no device, or if the crate was built without its
/// feature `cuda`. A reading that a device does not have is no error: [`GpuState::missing`](crate::report::GpuState::missing)
/// says why.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::sample_gpus;
///
/// match sample_gpus() {
///     Ok(gpus) => {
///         for gpu in gpus {
///             println!("{gpu}");
///             println!("{:?} of {:?} W", gpu.power_w(), gpu.power_limit_w());
///         }
///     }
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
pub fn sample_gpus() -> Result<Vec<GpuState>, SensorError> {
    let path = with_control(|control| control.settings.nvml_library.clone());
    #[allow(
        unused_mut,
        reason = "the numbers in CUDA are added in builds that have it"
    )]
    let mut states = profiler_sensors::sample_gpus(path.as_deref())?;
    // The library is used if the program has loaded it.
    #[cfg(all(feature = "cuda", not(target_family = "wasm")))]
    if let Some(uuids) = library::find(DiscoveryReason::MeasuredCall).and_then(Driver::uuids) {
        for state in &mut states {
            state.device.ordinal = ordinal_of(&state.device.uuid, &uuids);
        }
    }
    Ok(states)
}

/// Returns the number of a device in CUDA: the order of NVML is another one, and the program may see fewer devices.
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(super) fn ordinal_of(uuid: &str, uuids: &[String]) -> Option<u32> {
    let place = uuids.iter().position(|known| known == uuid);
    place.and_then(|place| u32::try_from(place).ok())
}
