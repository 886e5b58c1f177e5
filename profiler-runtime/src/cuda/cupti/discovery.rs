//! Finds CUPTI's library: the one that the program has loaded, that of a setting, of a toolkit or of a Python package.

use std::cmp::Reverse;
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

/// The version of CUPTI 11.8, the first one whose functions and records are known to be as they are used here.
const MIN_VERSION: u32 = 18;

/// Why a library is not used.
#[derive(Debug)]
enum Unsuitable {
    /// It cannot be loaded.
    NotLoaded(String),
    /// It was loaded, and lacks something.
    TooOld(KernelStatus),
}

/// Finds and loads the library. It is never closed.
///
/// # Errors
///
/// Returns [`KernelStatus::NotFound`] or [`KernelStatus::TooOld`].
pub(super) fn find(setting: Option<&Path>, driver_version: i32) -> Result<Cupti, KernelStatus> {
    let load = |path: &Path| {
        let library = dynamic::load_from(path)
            .map_err(|error| Unsuitable::NotLoaded(dynamic::reason(&error)))?;
        read(library, &path.display().to_string()).map_err(Unsuitable::TooOld)
    };
    if let Some(path) = setting {
        return load(path).map_err(|reason| match reason {
            Unsuitable::NotLoaded(reason) => KernelStatus::NotFound {
                reason: format!("{} cannot be loaded: {reason}", path.display()),
            },
            Unsuitable::TooOld(status) => status,
        });
    }
    let loaded = NAMES.iter().find_map(|name| {
        let library = dynamic::loaded(&CString::new(*name).ok()?)?;
        Some((library, format!("{name} of the program")))
    });
    // A process has one CUPTI: if that of the program is too old, no other one is loaded beside it.
    if let Some((library, place)) = loaded {
        return read(library, &place);
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    // The user who starts a program with raised privileges must not choose what it loads.
    let folders = if privileges::are_raised() {
        folders(&|_| None)
    } else {
        folders(&variable)
    };
    let bare = NAMES.iter().map(PathBuf::from);
    let mut candidates: Vec<PathBuf> = bare
        .chain(folders.iter().flat_map(|folder| libraries_in(folder)))
        .collect();
    prefer_version(&mut candidates, driver_version / 1000);
    first_suitable(&candidates, load)
}

/// Reads the functions of a library, which is never closed.
fn read(library: Library, place: &str) -> Result<Cupti, KernelStatus> {
    let library = ManuallyDrop::new(library);
    let too_old = |reason: String| KernelStatus::TooOld {
        library: place.to_owned(),
        reason,
    };
    // SAFETY: the library is CUPTI by its name, or the user says so by `PROFILER_CUPTI_LIBRARY`. It is never closed.
    let cupti =
        unsafe { Cupti::read(place.to_owned(), |symbol| dynamic::symbol(&library, symbol)) }
            .map_err(|symbol| too_old(format!("lacks {symbol}")))?;
    check_version(cupti.version()).map_err(too_old)?;
    Ok(cupti)
}

/// Returns what is wrong with a version of CUPTI, if anything is.
fn check_version(version: u32) -> Result<(), String> {
    match version {
        0 => Err("does not state its version".to_owned()),
        1..MIN_VERSION => Err(format!(
            "is version {version}, and that of CUPTI 11.8 is {MIN_VERSION}"
        )),
        _ => Ok(()),
    }
}

/// Returns the first library that can be used.
fn first_suitable<T>(
    candidates: &[PathBuf],
    load: impl Fn(&Path) -> Result<T, Unsuitable>,
) -> Result<T, KernelStatus> {
    let (mut first, mut old) = (None, None);
    for path in candidates {
        match load(path) {
            Ok(found) => return Ok(found),
            Err(Unsuitable::NotLoaded(reason)) => {
                first.get_or_insert(reason);
            }
            Err(Unsuitable::TooOld(status)) => {
                old.get_or_insert(status);
            }
        }
    }
    let places = "the folders of the toolkit and of Python's packages have none";
    Err(old.unwrap_or_else(|| KernelStatus::NotFound {
        reason: first.map_or_else(|| places.to_owned(), |reason| format!("{reason}; {places}")),
    }))
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
    found.sort_by_cached_key(|path| Reverse((numbers_in(path), path.clone())));
    found
}

/// Returns the numbers in the name of a file: the parts of its version.
fn numbers_in(path: &Path) -> Vec<u64> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let digits = name.split(|letter: char| !letter.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the files of the library in a folder, the newest first. Those that are named by a year are left out if others
/// are named by the version of CUDA, which point to them.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = inside(folder, PREFIX);
    if found.iter().any(|path| major_of(path).is_some()) {
        found.retain(|path| major_of(path).is_some());
    }
    found
}

/// Returns the major version of CUDA in the name of a library's file.
fn major_of(path: &Path) -> Option<i32> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    let version = name.strip_prefix("libcupti.so.")?;
    let major = version.split('.').next()?.parse().ok()?;
    (major < 2000).then_some(major)
}

/// Moves libraries that are newer than the driver to the end, which may not support them.
fn prefer_version(found: &mut [PathBuf], driver: i32) {
    let is_newer = |path: &PathBuf| major_of(path).is_some_and(|major| major > driver);
    // Stable: otherwise in the order of the folders.
    found.sort_by_key(is_newer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_from_absolute_paths_only() {
        let root = Path::new(if cfg!(windows) { "C:/of" } else { "/of" });
        let none = folders(&|_| None);
        let all = folders(&|name| Some(root.join(name)));
        let relative = folders(&|_| Some("here".into()));
        assert_eq!(relative, none);
        for part in ["CUDA_HOME/extras/CUPTI/lib64", "CUDA_PATH/lib64"] {
            assert!(all.contains(&root.join(part)), "{all:?}");
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
        let mut files = libraries_in(&packages);
        prefer_version(&mut files, 12);
        let names: Vec<_> = files.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(
            names,
            ["libcupti.so.12", "libcupti.so.11.8", "libcupti.so.13"]
        );
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn versions_in_names_are_compared_as_numbers() {
        let newest_first = ["cuda-13.0", "cuda-12.10", "cuda-12.9", "cuda-9.2", "cuda"];
        let mut names = newest_first.map(PathBuf::from);
        names.reverse();
        names.sort_by_cached_key(|path| Reverse((numbers_in(path), path.clone())));
        assert_eq!(names, newest_first.map(PathBuf::from));
        for (name, major) in [
            ("libcupti.so.12", Some(12)),
            ("libcupti.so.11.8", Some(11)),
            ("libcupti.so.2024.1.0", None),
            ("libcupti.so", None),
        ] {
            assert_eq!(major_of(Path::new(name)), major, "{name}");
        }
    }

    #[test]
    fn versions_before_11_8_are_too_old() {
        for version in [0, 1, 17] {
            assert!(check_version(version).is_err(), "{version}");
        }
        for version in [18, 28, 130_001] {
            assert_eq!(check_version(version), Ok(()), "{version}");
        }
    }

    #[test]
    fn after_a_library_that_is_too_old_the_next_one_is_tried() {
        let too_old = |library: &str| KernelStatus::TooOld {
            library: library.to_owned(),
            reason: "is version 17".to_owned(),
        };
        let load = |path: &Path| match path.to_str() {
            Some("new") => Ok("new"),
            Some(old @ ("old" | "older")) => Err(Unsuitable::TooOld(too_old(old))),
            _ => Err(Unsuitable::NotLoaded("no such file".to_owned())),
        };
        let first = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            first_suitable(&paths, load)
        };
        assert_eq!(first(&["none", "old", "new"]), Ok("new"));
        assert_eq!(first(&["none", "old", "older"]), Err(too_old("old")));
        let Err(KernelStatus::NotFound { reason }) = first(&["none"]) else {
            panic!("nothing can be loaded");
        };
        assert!(reason.starts_with("no such file; "), "{reason}");
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
            let too_old = KernelStatus::TooOld {
                library: "libm.so.6".to_owned(),
                reason: "lacks cuptiGetVersion".to_owned(),
            };
            assert_eq!(other.err(), Some(too_old));
        }
    }
}
