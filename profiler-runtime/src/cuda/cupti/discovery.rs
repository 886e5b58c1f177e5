//! Finds CUPTI's library: that of a setting, the one that the program has loaded, or the first that can be used of those
//! on the system.

use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use profiler_cuda_sys::cupti::{Cupti, MIN_VERSION, search};
use profiler_cuda_sys::library::Library;
use profiler_host::process::privileges;

use super::status::KernelStatus;

/// Why a library is not used.
#[derive(Debug)]
enum Unsuitable {
    /// It cannot be loaded.
    NotLoaded(String),
    /// It was loaded, and lacks something or refuses to begin.
    Unusable(KernelStatus),
}

/// Finds a library, loads it, and begins to use it with `begin`. A library that was loaded is never closed.
///
/// # Errors
///
/// Returns [`KernelStatus::NotFound`], [`KernelStatus::TooOld`], or the error of `begin`.
pub(super) fn find<T>(
    setting: Option<&Path>,
    driver_version: i32,
    begin: impl Fn(Cupti) -> Result<T, KernelStatus>,
) -> Result<T, KernelStatus> {
    let load = |path: &Path| {
        // SAFETY: runs the initialisers of the library. It is CUPTI by its name, or the user says so by
        // `PROFILER_CUPTI_LIBRARY`.
        let library = unsafe { Library::load(path) }.map_err(Unsuitable::NotLoaded)?;
        let cupti = read(library, &path.display().to_string());
        cupti.and_then(&begin).map_err(Unsuitable::Unusable)
    };
    if let Some(path) = setting {
        return load(path).map_err(|reason| match reason {
            Unsuitable::NotLoaded(reason) => KernelStatus::NotFound {
                reason: format!("{} cannot be loaded: {reason}", path.display()),
            },
            Unsuitable::Unusable(status) => status,
        });
    }
    // A process has one CUPTI: if that of the program is not usable, no other one is loaded beside it.
    if let Some((library, place)) = loaded() {
        return read(library, &place).and_then(begin);
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    // The user who starts a program with raised privileges must not choose what it loads.
    let candidates = if privileges::are_raised() {
        search::candidates(&|_| None, driver_version)
    } else {
        search::candidates(&variable, driver_version)
    };
    first_suitable(&candidates, load)
}

/// Returns the library that the program has loaded, by whatever name, and where it is.
fn loaded() -> Option<(Library, String)> {
    let of_program = |path: &Path| {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
        let library = Library::loaded(&name)?;
        Some((library, format!("{} of the program", path.display())))
    };
    let mut names = search::NAMES.iter();
    let by_name = names.find_map(|name| of_program(Path::new(name)));
    by_name.or_else(|| {
        let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
        let mapped = search::mapped(&String::from_utf8_lossy(&maps));
        let is_cupti = |library: &Library| library.symbol(c"cuptiGetVersion").is_some();
        let mut found = mapped.iter().filter_map(|path| of_program(path));
        found.find(|(library, _)| is_cupti(library))
    })
}

/// Reads the functions of a library, which is never closed.
fn read(library: Library, place: &str) -> Result<Cupti, KernelStatus> {
    let library = ManuallyDrop::new(library);
    let too_old = |reason: String| KernelStatus::TooOld {
        library: place.to_owned(),
        reason,
    };
    // SAFETY: the library is CUPTI by its name, or the user says so by `PROFILER_CUPTI_LIBRARY`. It is never closed.
    let cupti = unsafe { Cupti::read(place.to_owned(), |symbol| library.symbol(symbol)) }
        .map_err(|symbol| too_old(format!("lacks {symbol}")))?;
    let version = cupti
        .version()
        .map_err(|refused| KernelStatus::refused(&cupti, refused))?;
    check_version(version).map_err(too_old)?;
    Ok(cupti)
}

/// Returns what is wrong with a version of CUPTI, if anything is.
fn check_version(version: u32) -> Result<(), String> {
    if version >= MIN_VERSION {
        return Ok(());
    }
    Err(format!(
        "is version {version}, and that of CUPTI 11.8 is {MIN_VERSION}"
    ))
}

/// Returns what the first library gives that can be used. Where another tool uses CUPTI, no other library is tried.
fn first_suitable<T>(
    candidates: &[PathBuf],
    load: impl Fn(&Path) -> Result<T, Unsuitable>,
) -> Result<T, KernelStatus> {
    let (mut first, mut unusable) = (None, None);
    for path in candidates {
        match load(path) {
            Ok(found) => return Ok(found),
            Err(Unsuitable::NotLoaded(reason)) => {
                first.get_or_insert(reason);
            }
            Err(Unsuitable::Unusable(status @ KernelStatus::Taken { .. })) => return Err(status),
            Err(Unsuitable::Unusable(status)) => {
                unusable.get_or_insert(status);
            }
        }
    }
    let places = "the folders of the toolkit and of Python's packages have none";
    Err(unusable.unwrap_or_else(|| KernelStatus::NotFound {
        reason: first.map_or_else(|| places.to_owned(), |reason| format!("{reason}; {places}")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Some(old @ ("old" | "older")) => Err(Unsuitable::Unusable(too_old(old))),
            Some("taken") => Err(Unsuitable::Unusable(KernelStatus::Taken { tool: None })),
            _ => Err(Unsuitable::NotLoaded("no such file".to_owned())),
        };
        let first = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            first_suitable(&paths, load)
        };
        assert_eq!(first(&["none", "old", "new"]), Ok("new"));
        assert_eq!(first(&["none", "old", "older"]), Err(too_old("old")));
        let taken = Err(KernelStatus::Taken { tool: None });
        assert_eq!(first(&["old", "taken", "new"]), taken);
        let Err(KernelStatus::NotFound { reason }) = first(&["none"]) else {
            panic!("nothing can be loaded");
        };
        assert!(reason.starts_with("no such file; "), "{reason}");
    }

    #[cfg(unix)]
    #[test]
    fn a_library_that_is_not_there_or_is_another_one_is_reported() {
        let find = |path| find(Some(Path::new(path)), 12_000, Ok);
        let missing = find("/there/is/no/libcupti.so");
        let Err(KernelStatus::NotFound { reason }) = missing else {
            panic!("{missing:?}");
        };
        assert!(
            reason.starts_with("/there/is/no/libcupti.so cannot be loaded: "),
            "{reason}"
        );
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        {
            let other = find("libm.so.6");
            let too_old = KernelStatus::TooOld {
                library: "libm.so.6".to_owned(),
                reason: "lacks cuptiGetVersion".to_owned(),
            };
            assert_eq!(other.err(), Some(too_old));
        }
    }
}
