//! The client that controls a loaded driver.

mod error;
mod hide;
mod install;

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::Library;

pub use error::SimulatorError;
pub use install::{Installation, Installed};

use crate::report::Report;

/// The name of the library file.
const FILE: &str = "libprofiler_simulated_driver.so";

/// The libraries that were loaded: what looks for leaks finds them here.
static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// A simulated driver in this process.
///
/// Two values for the same file control the same driver. The driver stays loaded until the process
/// exits.
#[derive(Clone, Copy, Debug)]
pub struct Simulator {
    run: extern "C" fn(*const c_char, *mut c_char, c_int) -> usize,
    now: extern "C" fn() -> u64,
    advance: extern "C" fn(u64) -> c_int,
    allow_waiting: extern "C" fn(c_int),
    calls: extern "C" fn(*const c_char) -> u64,
    faults: extern "C" fn() -> u64,
    thread: extern "C" fn() -> u64,
    report: extern "C" fn(*mut c_char, c_int) -> usize,
    library: &'static Library,
}

impl Simulator {
    /// Opens the library that Cargo built next to the running program.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::NotBuilt`] if there is no library: the program's package does not
    /// depend on this crate.
    pub fn built() -> Result<PathBuf, SimulatorError> {
        let program = std::env::current_exe().map_err(SimulatorError::Program)?;
        let folders = program.ancestors().skip(1).take(3);
        let mut places =
            folders.flat_map(|folder| [folder.join(FILE), folder.join("deps").join(FILE)]);
        places
            .find(|place| place.is_file())
            .ok_or(SimulatorError::NotBuilt { program })
    }

    /// Loads a driver.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::Load`] if the file cannot be loaded or is no simulated driver.
    pub fn open(library: &Path) -> Result<Self, SimulatorError> {
        let failed = |source| SimulatorError::Load {
            path: library.to_owned(),
            source,
        };
        // SAFETY: loading this library runs no initialization code, and it is never unloaded.
        let loaded = unsafe { Library::new(library) }.map_err(failed)?;
        let library: &'static Library = Box::leak(Box::new(loaded));
        LOADED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(library);
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the library exports the function under this name with the type of the
                // field. Both are in this crate (see `driver/control.rs`).
                *unsafe { library.get($name.as_bytes()) }.map_err(failed)?
            };
        }
        Ok(Self {
            run: function!("simulated_driver_run"),
            now: function!("simulated_driver_now"),
            advance: function!("simulated_driver_advance"),
            allow_waiting: function!("simulated_driver_allow_waiting"),
            calls: function!("simulated_driver_calls"),
            faults: function!("simulated_driver_faults"),
            thread: function!("simulated_driver_thread"),
            report: function!("simulated_driver_report"),
            library,
        })
    }

    /// Returns the loaded library, whose driver functions can be looked up.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Runs commands, one per line or separated by semicolons. The README lists them.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::Script`] for the first wrong command. The commands before it have
    /// run.
    pub fn run(&self, script: &str) -> Result<(), SimulatorError> {
        let text = CString::new(script).map_err(|_| SimulatorError::Zero)?;
        let mut refusal = vec![0_u8; 512];
        let length = (self.run)(text.as_ptr(), refusal.as_mut_ptr().cast(), 512);
        if length == 0 {
            return Ok(());
        }
        refusal.truncate(length.min(511));
        Err(SimulatorError::Script(
            String::from_utf8_lossy(&refusal).into_owned(),
        ))
    }

    /// Returns the time on the driver's clock in nanoseconds. All times in the report are on this
    /// clock.
    pub fn now(&self) -> u64 {
        (self.now)()
    }

    /// Advances the clock by `ns` nanoseconds.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::RealClock`] if the pace of the clock is real.
    pub fn advance(&self, ns: u64) -> Result<(), SimulatorError> {
        if (self.advance)(ns) == 0 {
            Ok(())
        } else {
            Err(SimulatorError::RealClock)
        }
    }

    /// Runs `work`, during which this thread may wait for devices regardless of the policy.
    pub fn allow_waiting<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Region(extern "C" fn(c_int));
        impl Drop for Region {
            fn drop(&mut self) {
                (self.0)(0);
            }
        }
        (self.allow_waiting)(1);
        let _region = Region(self.allow_waiting);
        work()
    }

    /// Returns the number of calls of an entry point since the last `reset`, or `None` if it does
    /// not exist.
    pub fn calls(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        Some((self.calls)(name.as_ptr())).filter(|calls| *calls != u64::MAX)
    }

    /// Returns the number of faults that were triggered.
    pub fn faults(&self) -> u64 {
        (self.faults)()
    }

    /// Returns the number of this thread in the report.
    pub fn thread(&self) -> u64 {
        (self.thread)()
    }

    /// Returns the report.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::Report`] if the report cannot be parsed, for example because the
    /// driver is of another build.
    pub fn report(&self) -> Result<Report, SimulatorError> {
        // The report may grow between the two calls, because other threads use the driver.
        let mut room = 1 << 16;
        loop {
            let mut text = vec![0_u8; room];
            let space = c_int::try_from(room).unwrap_or(c_int::MAX);
            let length = (self.report)(text.as_mut_ptr().cast(), space);
            if length < room || space == c_int::MAX {
                text.truncate(length);
                return serde_json::from_slice(&text).map_err(SimulatorError::Report);
            }
            room = length + (1 << 16);
        }
    }
}

impl Report {
    /// Reads the file that `report-at-exit` wrote.
    ///
    /// # Errors
    ///
    /// Returns [`SimulatorError::File`] if the file does not exist, because the process never
    /// loaded the driver or was killed, and [`SimulatorError::Report`] if it cannot be parsed.
    pub fn read(path: &Path) -> Result<Self, SimulatorError> {
        let failed = |source| SimulatorError::File {
            path: path.to_owned(),
            source,
        };
        let text = std::fs::read(path).map_err(failed)?;
        serde_json::from_slice(&text).map_err(SimulatorError::Report)
    }
}
