//! Finds and initialises NVML.

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;

use super::code::Code;
use super::table::Table;

#[cfg(not(windows))]
const NAME: &str = "libnvidia-ml.so.1";
/// In the system's folder, where the driver installs it.
#[cfg(windows)]
const NAME: &str = "nvml.dll";

/// Do not open the devices: a program that only looks must not keep them awake.
const NO_ATTACH: u32 = 2;

/// Why the sensors cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NvmlError {
    #[error(
        "{name} cannot be loaded ({reason}): it comes with NVIDIA's driver; PROFILER_NVML_LIBRARY takes its path"
    )]
    NoLibrary { name: String, reason: String },
    #[error("{name} lacks {symbol}: update NVIDIA's driver")]
    TooOld { name: String, symbol: &'static str },
    #[error("NVML cannot be used ({0})")]
    Refused(Code),
}

/// Opens the library at `path` or the system's, and initialises it.
pub(super) fn open(path: Option<&Path>) -> Result<Table, NvmlError> {
    let path = path.unwrap_or(Path::new(NAME));
    let name = || path.display().to_string();
    // SAFETY: runs the initialisers of the library. It is NVML by its name, or the user says so by
    // `PROFILER_NVML_LIBRARY`.
    let library = unsafe { Library::new(path) }.map_err(|error| NvmlError::NoLibrary {
        name: name(),
        reason: reason(&error),
    })?;
    // Never closed: a call may be in progress when the process ends.
    let library = ManuallyDrop::new(library);
    // SAFETY: as above for the library, which stays open. The table's types are those of `nvml.h`.
    let table = unsafe { Table::read(|symbol| address(&library, symbol)) };
    let table = table.map_err(|symbol| NvmlError::TooOld {
        name: name(),
        symbol,
    })?;
    initialise(&table).map_err(NvmlError::Refused)?;
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

fn address(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the symbol is read as an address only. `Table::read` gives it its type.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    let address = *symbol;
    (!address.is_null()).then_some(address)
}

/// Returns the system loader's own message, which `libloading` gives as the source of its error.
fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
