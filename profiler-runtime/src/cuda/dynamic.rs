//! Loading the driver's library.

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::path::Path;

use libloading::Library;

use super::status::Status;

/// As the driver's installer names it; the plain name may lead to a stub that is there for linking only,
/// and so comes last.
#[cfg(unix)]
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
#[cfg(not(unix))]
const NAMES: [&str; 1] = ["nvcuda.dll"];

/// The library at `path`, or that of the system. Where it is not to be loaded, only one that the process
/// has already is found.
pub(super) fn open(path: Option<&Path>, load: bool) -> Result<Library, Status> {
    if let Some(path) = path {
        return load_from(path).map_err(|error| Status::NoLibrary {
            reason: format!("{} cannot be loaded: {}", path.display(), reason(&error)),
        });
    }
    if let Some(library) = NAMES.iter().find_map(|name| loaded(name)) {
        return Ok(library);
    }
    if !load {
        return Err(Status::NotLoaded);
    }
    let mut reasons = Vec::new();
    for name in NAMES {
        match load_from(Path::new(name)) {
            Ok(library) => return Ok(library),
            Err(error) => reasons.push(reason(&error)),
        }
    }
    Err(Status::NoLibrary {
        reason: reasons.swap_remove(0),
    })
}

/// What the loader said itself, which stands behind the library's own words.
fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

fn load_from(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: runs the initialisers of the library, which is the driver by its name, or by the word of
    // whoever set the variable; the program would run the same ones to use it.
    unsafe { Library::new(path) }
}

#[cfg(unix)]
fn loaded(name: &str) -> Option<Library> {
    use libloading::os::unix;

    // SAFETY: with this flag nothing is loaded, and no initialiser runs.
    let library = unsafe { unix::Library::open(Some(name), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    library.ok().map(Library::from)
}

#[cfg(windows)]
fn loaded(name: &str) -> Option<Library> {
    use libloading::os::windows;

    windows::Library::open_already_loaded(name)
        .ok()
        .map(Library::from)
}

#[cfg(not(any(unix, windows)))]
fn loaded(_name: &str) -> Option<Library> {
    None
}

/// The address of a symbol.
pub(super) fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the type asked for is an address, which any symbol has; what it means is for the table to
    // say.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    let address = *symbol;
    (!address.is_null()).then_some(address)
}
