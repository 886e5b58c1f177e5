//! Loads NVIDIA's libraries.

use std::error::Error;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;

/// A library that is loaded. Dropping it closes it, after which its functions must not be called.
#[derive(Debug)]
pub struct Library(libloading::Library);

/// Why there is no library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The process has not loaded it.
    NotLoaded,
    /// It cannot be loaded, for this reason of the system's loader.
    Failed(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoaded => f.write_str("the process has not loaded it"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl Error for OpenError {}

/// Returns the file that the loader opens, as far as that is known: the system has other folders for bare names.
#[cfg(unix)]
fn file_of(path: &Path) -> Option<PathBuf> {
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("LD_LIBRARY_PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(path));
    files.find(|file| file.exists())
}

impl Library {
    /// Loads the library at `path`. A bare name is looked for where the system's loader looks.
    ///
    /// # Errors
    ///
    /// Returns the message of the system's loader, or says that the file at `path`, or one of that name in `LD_LIBRARY_PATH`,
    /// is incomplete: the loader would end the program by a signal.
    ///
    /// # Safety
    ///
    /// Runs the initialisers of the library, and its finalisers when it is closed: they must be sound to run.
    pub unsafe fn load(path: &Path) -> Result<Self, String> {
        #[cfg(unix)]
        if let Some(file) = file_of(path) {
            crate::elf::check(&file)?;
        }
        // SAFETY: as the caller promises.
        let loaded = unsafe { libloading::Library::new(path) };
        loaded.map(Self).map_err(|error| {
            // The loader's own message, which `libloading` gives as the source of its error.
            let reason = error.source().map(ToString::to_string);
            reason.unwrap_or_else(|| error.to_string())
        })
    }

    /// Returns a library that the process has loaded already.
    #[cfg(unix)]
    pub fn loaded(name: &CStr) -> Option<Self> {
        use libloading::os::unix;

        // Called directly, since `libloading` allocates and this may run on a measured thread.
        //
        // SAFETY: the name is terminated. `RTLD_NOLOAD` loads nothing and runs no initialiser.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
        // SAFETY: `dlopen` has just returned the handle, and nothing else owns this reference to it.
        (!handle.is_null()).then(|| Self(unsafe { unix::Library::from_raw(handle) }.into()))
    }

    /// Returns a library that the process has loaded already.
    #[cfg(windows)]
    pub fn loaded(name: &CStr) -> Option<Self> {
        use libloading::os::windows;

        let name = name.to_str().ok()?;
        windows::Library::open_already_loaded(name)
            .ok()
            .map(|library| Self(library.into()))
    }

    /// Returns the address of a symbol.
    pub fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the symbol is read as an address only. Who calls it gives it its type.
        let symbol = unsafe { self.0.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        let address = *symbol;
        (!address.is_null()).then_some(address)
    }
}
