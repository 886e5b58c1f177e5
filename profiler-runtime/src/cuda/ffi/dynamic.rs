//! Loading the driver's library.

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::path::Path;

use libloading::Library;

use crate::cuda::status::Status;

/// As the driver's installer names it; the plain name may lead to a stub that is there for linking only,
/// and so comes last.
#[cfg(unix)]
const NAMES: [&CStr; 2] = [c"libcuda.so.1", c"libcuda.so"];
#[cfg(not(unix))]
const NAMES: [&CStr; 1] = [c"nvcuda.dll"];

/// The library at `path`, or that of the system. Where it is not to be loaded, only one that the process
/// has already is found.
pub(crate) fn open(path: Option<&Path>, load: bool) -> Result<Library, Status> {
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
        match load_from(Path::new(name.to_str().unwrap_or_default())) {
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
fn loaded(name: &CStr) -> Option<Library> {
    use libloading::os::unix;

    // Not through the library, which allocates: a measured thread may ask a few times.
    //
    // SAFETY: the name is terminated. With this flag nothing is loaded, and no initialiser runs.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    // SAFETY: the handle is one that `dlopen` gave, and nobody else's.
    (!handle.is_null()).then(|| unsafe { unix::Library::from_raw(handle) }.into())
}

#[cfg(windows)]
fn loaded(name: &CStr) -> Option<Library> {
    use libloading::os::windows;

    let name = name.to_str().ok()?;
    windows::Library::open_already_loaded(name)
        .ok()
        .map(Library::from)
}

#[cfg(not(any(unix, windows)))]
fn loaded(_name: &CStr) -> Option<Library> {
    None
}

/// The address of a symbol.
pub(crate) fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the type asked for is an address, which any symbol has; what it means is for the table to
    // say.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    let address = *symbol;
    (!address.is_null()).then_some(address)
}
