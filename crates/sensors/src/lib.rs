//! The sensors of NVIDIA's GPUs, read with NVML, the library behind `nvidia-smi`.
//!
//! [`sample_gpus`] reads all devices once. [`profiler-runtime`](https://docs.rs/profiler-runtime), with which the crate changes,
//! reads them at intervals: it opens the library once with `open`, asks `devices` for their [`GpuDevice`]s, and reads each
//! through `Sensors`, which gives up calls that are refused, counts those that are slow, and tells an `Observer` of each call before it is made,
//! since a call may never return.
//!
//! The library is loaded with the feature `load`; WebAssembly has none.
//!
//! # Examples
//!
//! ```
//! match profiler_sensors::sample_gpus(None) {
//!     Ok(gpus) => gpus.iter().for_each(|gpu| println!("{gpu}")),
//!     Err(error) => eprintln!("{error}"),
//! }
//! ```
//!
//! [`GpuDevice`]: profiler_report::GpuDevice

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "load", not(target_family = "wasm")))]
mod call;
mod error;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
mod getters;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
mod library;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
mod sensors;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
mod slow_calls;
mod state;

#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub use self::call::{Call, Observer};
pub use self::error::SensorError;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub use self::library::open;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub use self::sensors::{EnergyReading, Note, Refused, Sampled, Sensors, devices};
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub use self::slow_calls::SlowCalls;
pub use self::state::{GpuState, sample_gpus};
