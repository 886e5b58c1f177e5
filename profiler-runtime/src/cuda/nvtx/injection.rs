//! Finds the function that initializes a tool, where NVTX 3.7 looks for it: its load sequence 3.
//!
//! 1. The library whose path is in a variable. The path `./.` ends the search.
//! 2. The CUDA driver, if a file says that a tool waits there. Without that file, no driver is loaded for it.

use std::env;
use std::ffi::{OsString, c_void};
use std::mem;
use std::path::{Path, PathBuf};

use profiler_cuda_sys::driver;
use profiler_cuda_sys::library::Library;
use profiler_cuda_sys::nvtx::{GET_INITIALIZER, GetInitializer, INITIALIZER, Initialize};
use profiler_host::process::privileges;

use super::attach::NoTool;
use crate::switch::with_control;

/// The variable in which a tool passes the path of its injection library.
pub(super) const VARIABLE: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};

/// The path that asks for no tool.
const NONE: &str = "./.";

/// The file that says that a tool waits in the driver.
const ADVERTISEMENT: &str = "nvtx-cuda.yaml";

/// Where a tool may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Injection {
    /// In a library.
    Library(OsString),
    /// In the driver.
    Driver,
    /// Nowhere.
    Nowhere,
    /// Nowhere, since the variable says so.
    Declined,
}

impl Injection {
    /// Looks where a tool may be. Loads nothing.
    pub(super) fn find() -> Self {
        // An empty value counts as unset, as for the profiler's own variables.
        let path = env::var_os(VARIABLE).filter(|path| !path.is_empty());
        match path {
            Some(path) if path == NONE => Self::Declined,
            Some(path) => Self::Library(path),
            None if is_advertised() => Self::Driver,
            None => Self::Nowhere,
        }
    }

    pub(super) fn is_somewhere(&self) -> bool {
        matches!(self, Self::Library(_) | Self::Driver)
    }

    /// Loads the tool. Returns its library, its function, and what to call it in a message.
    pub(super) fn load(self) -> Result<(Library, Initialize, String), NoTool> {
        match self {
            Self::Library(path) => load_library(Path::new(&path)),
            Self::Driver => ask_driver().ok_or(NoTool::NotInDriver),
            Self::Nowhere => Err(NoTool::NotSet),
            Self::Declined => Err(NoTool::Declined),
        }
    }
}

fn load_library(path: &Path) -> Result<(Library, Initialize, String), NoTool> {
    if privileges::are_raised() {
        return Err(NoTool::RaisedPrivileges);
    }
    // SAFETY: runs the initialisers of the library. The user or the tool that started the program says by the variable
    // that it is a tool, for which every program that uses NVTX would load it.
    let library = unsafe { Library::load(path) }.map_err(NoTool::NotLoaded)?;
    let shown = path.display();
    let initialize = library.symbol(c"InitializeInjectionNvtx2");
    let initialize = initialize.ok_or_else(|| NoTool::NoFunction(shown.to_string()))?;
    // SAFETY: the interface gives the function under this name this type.
    let initialize = unsafe { mem::transmute::<*mut c_void, Initialize>(initialize) };
    Ok((
        library,
        initialize,
        format!("the one in {VARIABLE}, {shown},"),
    ))
}

/// Asks the driver for the function of its tool. Does not initialise the driver.
fn ask_driver() -> Option<(Library, Initialize, String)> {
    let setting = with_control(|control| control.settings.cuda_library.clone());
    // SAFETY: runs the initialisers of the library. It is NVIDIA's driver by its name, or the user says so by
    // `PROFILER_CUDA_LIBRARY`.
    let library = unsafe { driver::open(setting.as_deref(), true) }.ok()?;
    let get = library.symbol(GET_INITIALIZER)?;
    // SAFETY: the interface gives the function under this name this type.
    let get = unsafe { mem::transmute::<*mut c_void, GetInitializer>(get) };
    let mut initialize = None;
    // SAFETY: writes one function, which outlives the call.
    let code = unsafe { get(INITIALIZER, &raw mut initialize) };
    let initialize = initialize.filter(|_| code == 0)?;
    Some((library, initialize, "that of the CUDA driver".to_owned()))
}

/// Returns `true` if a tool says that it waits in the driver.
fn is_advertised() -> bool {
    let trusted = |name: &str| env::var_os(name).filter(|_| !privileges::are_raised());
    advertised_in(&trusted, is_root())
        .iter()
        .any(|folder| folder.join(ADVERTISEMENT).exists())
}

/// Returns the folders that may have the file.
#[cfg(unix)]
fn advertised_in(variable: &dyn Fn(&str) -> Option<OsString>, is_root: bool) -> Vec<PathBuf> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let of_system = Path::new("/run/nvidia/nvtx");
    let of_user = if is_root {
        Some(of_system.join("user.0"))
    } else {
        let folder = variable("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
        folder.map(|folder| Path::new(&folder).join("nvidia/nvtx"))
    };
    [of_system.to_owned()].into_iter().chain(of_user).collect()
}

#[cfg(windows)]
fn advertised_in(variable: &dyn Fn(&str) -> Option<OsString>, _is_root: bool) -> Vec<PathBuf> {
    [
        ("ProgramFiles", r"NVIDIA Corporation\NVTX\runtime"),
        ("LOCALAPPDATA", r"NVIDIA Corporation\NVTX"),
    ]
    .into_iter()
    .filter_map(|(name, folder)| Some(Path::new(&variable(name)?).join(folder)))
    .collect()
}

#[cfg(unix)]
fn is_root() -> bool {
    // SAFETY: takes no arguments and always succeeds.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(windows)]
fn is_root() -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_where_nvtx_looks_for_it() {
        let set = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".into());
        let of_system = PathBuf::from("/run/nvidia/nvtx");
        assert_eq!(
            advertised_in(&set, false),
            [of_system.clone(), "/run/user/7/nvidia/nvtx".into()]
        );
        assert_eq!(
            advertised_in(&set, true),
            [of_system.clone(), "/run/nvidia/nvtx/user.0".into()]
        );
        assert_eq!(advertised_in(&|_| None, false), [of_system]);
    }
}
