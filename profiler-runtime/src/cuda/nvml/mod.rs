//! The sensors of the devices, read with NVML, the library behind `nvidia-smi`.
//!
//! One thread, the sampler, calls NVML, at intervals and only if samples were asked for. A call of NVML may take
//! milliseconds, and on a lost device it may not return: the measured threads and the summary only read what the
//! sampler has stored, and the exit of the process waits for it with a limit.
//!
//! `profiler-sensors` finds NVML and reads one device, [`now`] all of them once on the thread that asks. [`pace`] makes samples
//! rarer where calls are slow, [`sampled`] compares each sample with the one before, [`store`] keeps the samples. [`energy`] shares
//! energy out to names, by the GPU times that the resolver adds: [`intervals`].

#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(super) mod energy;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "no_energy.rs"]
pub(super) mod energy;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod interval;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod intervals;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod logged;
mod now;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod pace;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod sampled;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "not_built.rs"]
mod sampler;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod sampler;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod store;

pub use now::sample_gpus;
pub(crate) use sampler::{
    ClosingSample, begin, last_sample, samples, samples_between, shut_down, want, window_closed,
    window_opened,
};
