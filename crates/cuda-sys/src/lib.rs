//! The functions of NVIDIA's driver, CUPTI, NVML and NVTX that a profiler calls, and one of libtorch: their types, their
//! result codes, and how their libraries are found and loaded while the program runs.
//!
//! Nothing of NVIDIA's is needed to build. A function that a release of a library lacks is `None` in its table, or the
//! library counts as too old. The crate decides nothing: when a library is loaded and what is called is up to its user,
//! [`profiler-runtime`](https://docs.rs/profiler-runtime), with which it changes.
//!
//! - [`driver`]: the CUDA driver.
//! - [`cupti`]: NVIDIA's interface for profilers.
//! - [`nvml`]: the sensors of the devices.
//! - [`nvtx`]: ranges for tools such as Nsight Systems.
//! - `libtorch`: the stream on which libtorch launches, with the feature `load`.
//! - `library`: loads one of these, with the feature `load`; WebAssembly has none.
//!
//! # Examples
//!
//! ```no_run
//! # #[cfg(feature = "load")] {
//! use std::mem::ManuallyDrop;
//!
//! use profiler_cuda_sys::driver::{self, Driver};
//!
//! // SAFETY: the library is NVIDIA's driver by its name.
//! let library = unsafe { driver::open(None, true) }?;
//! // Never closed: the driver's functions are called until the process ends.
//! let library = ManuallyDrop::new(library);
//! // SAFETY: as above.
//! let driver = unsafe { Driver::read(|name| library.symbol(name)) }?;
//! println!("CUDA {}, {:?}", driver.version(), driver.devices());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cupti;
mod declare;
pub mod driver;
#[cfg(all(feature = "load", unix))]
mod elf;
#[cfg(test)]
mod headers;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub mod library;
#[cfg(all(feature = "load", not(target_family = "wasm")))]
pub mod libtorch;
pub mod nvml;
pub mod nvtx;
mod table;
