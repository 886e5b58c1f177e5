//! Finds CUPTI's library: the one that the program has loaded, that of a setting, of a toolkit or of a Python package.

use std::ffi::{CString, OsStr};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::status::KernelStatus;
use super::table::Cupti;
use crate::cuda::ffi::dynamic;
use crate::process::privileges;

/// The names of the library that the system's loader looks for, newest first.
#[cfg(not(windows))]
const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];
#[cfg(windows)]
const NAMES: [&str; 0] = [];

/// The beginning of the names of the library's files.
const PREFIX: &str = if cfg!(windows) {
    "cupti64_"
} else {
    "libcupti.so"
};

/// Where a toolkit has the library.
const IN_TOOLKIT: [&str; 4] = [
    "extras/CUPTI/lib64",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "lib64",
];

/// Where Python's packages have it: one folder for each library up to CUDA 12, one for all from 13 on.
const IN_PACKAGES: [&str; 2] = ["nvidia/cuda_cupti/lib", "nvidia/cu13/lib"];

/// Finds and loads the library. It is never closed.
///
/// # Errors
///
/// Returns [`KernelStatus::NotFound`] or [`KernelStatus::TooOld`].
pub(super) fn find(setting: Option<&Path>, driver_version: i32) -> Result<Cupti, KernelStatus> {
    let (library, place) =
        open(setting, driver_version).map_err(|reason| KernelStatus::NotFound { reason })?;
    let library = ManuallyDrop::new(library);
    // SAFETY: the library is CUPTI by its name, or the user says so by `PROFILER_CUPTI_LIBRARY`. It is never closed.
    let cupti = unsafe { Cupti::read(place, |symbol| dynamic::symbol(&library, symbol)) };
    cupti.map_err(|symbol| KernelStatus::TooOld {
        symbol: symbol.to_owned(),
    })
}

fn open(setting: Option<&Path>, driver_version: i32) -> Result<(Library, String), String> {
    let load = |path: &Path| {
        dynamic::load_from(path)
            .map(|library| (library, path.display().to_string()))
            .map_err(|error| dynamic::reason(&error))
    };
    if let Some(path) = setting {
        return load(path)
            .map_err(|reason| format!("{} cannot be loaded: {reason}", path.display()));
    }
    let loaded = NAMES.iter().find_map(|name| {
        let library = dynamic::loaded(&CString::new(*name).ok()?)?;
        Some((library, format!("{name} of the program")))
    });
    if let Some(loaded) = loaded {
        return Ok(loaded);
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    // The user who starts a program with raised privileges must not choose what it loads.
    let folders = if privileges::are_raised() {
        folders(&|_| None)
    } else {
        folders(&variable)
    };
    let mut found: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| inside(folder, PREFIX))
        .collect();
    prefer_version(&mut found, driver_version / 1000);
    let bare = NAMES.iter().map(PathBuf::from);
    let mut first = None;
    for path in bare.chain(found) {
        match load(&path) {
            Ok(found) => return Ok(found),
            Err(reason) => {
                first.get_or_insert(reason);
            }
        }
    }
    let places = "the folders of the toolkit and of Python's packages have none";
    Err(first.map_or_else(|| places.to_owned(), |reason| format!("{reason}; {places}")))
}

/// Returns the folders that may have the library.
fn folders(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    // A relative folder would be another one after the program has changed its own.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(absolute)
        .collect();
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].map(absolute);
    toolkits.extend(environments.iter().flatten().cloned());
    toolkits.extend(inside(Path::new("/usr/local"), "cuda"));
    let mut folders: Vec<PathBuf> = toolkits
        .iter()
        .flat_map(|toolkit| IN_TOOLKIT.map(|part| toolkit.join(part)))
        .collect();
    for environment in environments.iter().flatten() {
        folders.push(environment.join("lib"));
        for python in inside(&environment.join("lib"), "python3") {
            let packages = python.join("site-packages");
            folders.extend(IN_PACKAGES.map(|part| packages.join(part)));
        }
    }
    folders
}

/// Returns the entries of a folder whose names have this prefix, the newest version first.
fn inside(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.starts_with(prefix))
    });
    found.sort_unstable_by(|left, right| right.cmp(left));
    found
}

/// Moves libraries that are newer than the driver to the end, which may not support them.
fn prefer_version(found: &mut [PathBuf], driver: i32) {
    let is_newer = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let version = name.strip_prefix("libcupti.so.").unwrap_or_default();
        let major = version.split('.').next().unwrap_or_default();
        major
            .parse()
            .is_ok_and(|major: i32| major < 2000 && major > driver)
    };
    // Stable: otherwise in the order of the folders.
    found.sort_by_key(is_newer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_from_absolute_paths_only() {
        let none = folders(&|_| None);
        let all = folders(&|name| Some(format!("/of/{name}").into()));
        let relative = folders(&|_| Some("here".into()));
        assert_eq!(relative, none);
        for part in ["CUDA_HOME/extras/CUPTI/lib64", "CUDA_PATH/lib64"] {
            assert!(all.contains(&Path::new("/of").join(part)), "{all:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn packages_of_an_environment_are_searched() {
        let folder = std::env::temp_dir().join(format!("profiler-cupti-{}", std::process::id()));
        let packages = folder.join("lib/python3.11/site-packages/nvidia/cuda_cupti/lib");
        std::fs::create_dir_all(&packages).expect("a folder");
        for version in ["12", "11.8", "13"] {
            let file = packages.join(format!("libcupti.so.{version}"));
            std::fs::write(file, "no library").expect("a file");
        }
        let variable = |name: &str| (name == "VIRTUAL_ENV").then(|| folder.clone());
        let found = folders(&variable);
        assert!(found.contains(&packages), "{found:?}");
        let mut files = inside(&packages, PREFIX);
        prefer_version(&mut files, 12);
        let names: Vec<_> = files.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(
            names,
            ["libcupti.so.12", "libcupti.so.11.8", "libcupti.so.13"]
        );
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

    #[cfg(unix)]
    #[test]
    fn a_library_that_is_not_there_or_is_another_one_is_reported() {
        let missing = find(Some(Path::new("/there/is/no/libcupti.so")), 12_000);
        let Err(KernelStatus::NotFound { reason }) = missing else {
            panic!("{missing:?}");
        };
        assert!(
            reason.starts_with("/there/is/no/libcupti.so cannot be loaded: "),
            "{reason}"
        );
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            let other = find(Some(Path::new("libm.so.6")), 12_000);
            let symbol = "cuptiGetVersion".to_owned();
            assert_eq!(other.err(), Some(KernelStatus::TooOld { symbol }));
        }
    }
}
