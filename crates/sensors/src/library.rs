//! Finds and initialises NVML.

use std::mem::ManuallyDrop;
use std::path::Path;

use profiler_cuda_sys::library::Library;
use profiler_cuda_sys::nvml::{Code, LIBRARY_NAME, NO_ATTACH, Table};

use super::SensorError;

/// Opens the library at `path` or the system's, and initialises it. It is never closed.
///
/// # Errors
///
/// Returns an error if the library cannot be loaded, is too old, or cannot be initialised.
pub fn open(path: Option<&Path>) -> Result<Table, SensorError> {
    let path = path.unwrap_or(Path::new(LIBRARY_NAME));
    let name = || path.display().to_string();
    // SAFETY: runs the initialisers of the library. It is NVML by its name, or the user says so by
    // `PROFILER_NVML_LIBRARY`.
    let library = unsafe { Library::load(path) }.map_err(|reason| SensorError::NoLibrary {
        name: name(),
        reason,
    })?;
    // Never closed: a call may be in progress when the process ends.
    let library = ManuallyDrop::new(library);
    // SAFETY: as above for the library, which stays open. The table's types are those of `nvml.h`.
    let table = unsafe { Table::read(|symbol| library.symbol(symbol)) };
    let table = table.map_err(|symbol| SensorError::TooOld {
        name: name(),
        symbol,
    })?;
    initialise(&table).map_err(|code| SensorError::Refused {
        reason: code.to_string(),
    })?;
    Ok(table)
}

/// Initialises NVML, which counts its users: the program's own use is not disturbed.
fn initialise(table: &Table) -> Result<(), Code> {
    if let Some(init) = table.init_with_flags {
        // SAFETY: takes a number, and may be called at any time.
        return unsafe { init(NO_ATTACH) }.ok();
    }
    // SAFETY: as above.
    unsafe { (table.init)() }.ok()
}
