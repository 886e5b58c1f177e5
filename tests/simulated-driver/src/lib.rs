//! A CUDA driver that needs no GPU: it keeps time, captures, counts, and fails on request.
//!
//! As a `cdylib` this crate exports the functions of the CUDA driver; programs load it as they
//! load the true one. As a library for tests it is the remote control of such a driver:
//!
//! ```no_run
//! use profiler_simulated_driver::{Installation, Simulator};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A driver of its own in a folder, for another process ...
//! let folder = std::env::temp_dir().join("driver");
//! let driver = Installation::new(&folder).driver_version(11_000).create()?;
//! driver.command("some-program", "clock virtual\nreport-at-exit report.json").status()?;
//!
//! // ... or for this one.
//! let simulator = Simulator::open(&driver.library())?;
//! simulator.run("clock virtual\nfault cuEventRecord nth 100 sticky 700")?;
//! simulator.advance(20_000)?;
//! assert_eq!(simulator.report()?.alive.events, 0);
//! # Ok(())
//! # }
//! ```
//!
//! Each copy of the library file is a driver of its own. The functions of the driver inside this
//! library are not meant to be called by its name: open the file that holds them.

mod client;
mod driver;
mod report;

pub use client::{Installation, Installed, Simulator, SimulatorError};
pub use report::{Activity, ActivityKind, Misuse, Objects, Report};
