//! A CUDA driver that needs no GPU: it simulates time and captures, counts calls, and fails on request. A copy of the file passes
//! for libtorch.
//!
//! As a `cdylib`, this crate exports the functions of the CUDA driver, and programs load it like a real
//! driver. As a library, it lets tests control such a driver:
//!
//! ```no_run
//! use profiler_simulated_driver::{Installation, Simulator};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A driver in a folder, for another process ...
//! let folder = std::env::temp_dir().join("driver");
//! let driver = Installation::new(&folder).driver_version(11_000).create()?;
//! driver.command("some-program", "clock virtual\nreport-at-exit report.json").status()?;
//!
//! // ... or for this process.
//! let simulator = Simulator::open(&driver.library())?;
//! simulator.run("clock virtual\nfault cuEventRecord nth 100 sticky 700")?;
//! simulator.advance(20_000)?;
//! assert_eq!(simulator.report()?.alive.events, 0);
//! # Ok(())
//! # }
//! ```
//!
//! Each copy of the library file is a separate driver. The driver functions inside this library must
//! not be called directly: load the file that contains them.

mod client;
mod driver;
mod libtorch;
mod report;

pub use client::{Installation, Installed, Simulator, SimulatorError};
pub use report::{Activity, ActivityKind, CuptiReport, Misuse, Objects, Report};
