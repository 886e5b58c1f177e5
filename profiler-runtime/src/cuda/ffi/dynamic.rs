//! Loads the driver's library.

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::path::Path;

use libloading::Library;

use crate::cuda::status::Status;

/// The library's names. `libcuda.so` comes last, since it may be a stub that only serves linking.
#[cfg(unix)]
const NAMES: [&CStr; 2] = [c"libcuda.so.1", c"libcuda.so"];
#[cfg(not(unix))]
const NAMES: [&CStr; 1] = [c"nvcuda.dll"];

/// Returns the library at `path`, or the system's. Without `load`, returns the system's only if the process has loaded
/// it already.
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

/// Returns the system loader's own message, which `libloading` gives as the source of its error.
pub(crate) fn reason(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

pub(crate) fn load_from(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: runs the initialisers of the library. It is NVIDIA's by its name, or the user says so by a setting such as
    // `PROFILER_CUDA_LIBRARY`. The program would run the same initialisers to use it.
    unsafe { Library::new(path) }
}

/// Returns a library that the process has loaded already.
#[cfg(unix)]
pub(crate) fn loaded(name: &CStr) -> Option<Library> {
    use libloading::os::unix;

    // Called directly, since `libloading` allocates and this may run on a measured thread.
    //
    // SAFETY: the name is terminated. `RTLD_NOLOAD` loads nothing and runs no initialiser.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    // SAFETY: `dlopen` has just returned the handle, and nothing else owns this reference to it.
    (!handle.is_null()).then(|| unsafe { unix::Library::from_raw(handle) }.into())
}

/// Returns a library that the process has loaded already.
#[cfg(windows)]
pub(crate) fn loaded(name: &CStr) -> Option<Library> {
    use libloading::os::windows;

    let name = name.to_str().ok()?;
    windows::Library::open_already_loaded(name)
        .ok()
        .map(Library::from)
}

/// Returns the address of a symbol.
pub(crate) fn symbol(library: &Library, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the symbol is read as an address only. `Table::read` gives it its type.
    let symbol = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
    let address = *symbol;
    (!address.is_null()).then_some(address)
}
