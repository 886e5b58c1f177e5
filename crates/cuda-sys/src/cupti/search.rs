//! Where CUPTI's library may be: in the process, where the system's loader looks, in a toolkit, or in a Python package.

use std::cmp::{Ordering, Reverse};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The names of the library that the system's loader looks for, newest first.
#[cfg(not(windows))]
pub const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];
/// The system's loader looks for none.
#[cfg(windows)]
pub const NAMES: [&str; 0] = [];

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

/// Returns the files of CUPTI that a process has mapped, by the text of `/proc/self/maps`: packages rename libraries, as in
/// `libcupti-0b6b3e5f.so.12.4.127`, and such a one is found by no name.
pub fn mapped(maps: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        // Only a path has a slash.
        let path = line.find('/').and_then(|start| line.get(start..));
        let path = path.map(Path::new).filter(|path| is_renamed(path));
        if let Some(path) = path.filter(|path| !found.iter().any(|known| known == path)) {
            found.push(path.to_owned());
        }
    }
    found
}

/// Returns `true` for the name of the library, or one that a package has made of it.
fn is_renamed(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let rest = name.and_then(|name| name.strip_prefix("libcupti"));
    rest.is_some_and(|rest| rest.starts_with(['.', '-', '_']) && rest.contains(".so"))
}

/// Returns the paths to try, the best first: bare names for the system's loader, and the files that are there. `variable`
/// returns a variable of the environment, and `driver_version` is as [`Driver::version`](crate::driver::Driver::version)
/// returns it.
pub fn candidates(variable: &dyn Fn(&str) -> Option<PathBuf>, driver_version: i32) -> Vec<PathBuf> {
    let bare = NAMES.iter().map(PathBuf::from);
    let folders = folders(variable);
    let mut candidates: Vec<PathBuf> = bare
        .chain(folders.iter().flat_map(|folder| libraries_in(folder)))
        .collect();
    prefer_version(&mut candidates, driver_version / 1000);
    candidates
}

/// Returns the folders that may have the library.
fn folders(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    // A relative folder would be another one after the program has changed its own.
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(absolute)
        .collect();
    let mut environments: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(absolute)
        .collect();
    toolkits.extend(environments.iter().cloned());
    environments.extend(variable("PATH").and_then(|path| environment_of_python(&path)));
    toolkits.extend(inside(Path::new("/usr/local"), "cuda"));
    let mut folders: Vec<PathBuf> = toolkits
        .iter()
        .flat_map(|toolkit| IN_TOOLKIT.map(|part| toolkit.join(part)))
        .collect();
    for environment in &environments {
        folders.push(environment.join("lib"));
        for python in inside(&environment.join("lib"), "python3") {
            // Debian has packages of its own beside those that are installed with pip.
            for packages in ["site-packages", "dist-packages"] {
                folders.extend(IN_PACKAGES.map(|part| python.join(packages).join(part)));
            }
        }
    }
    folders
}

/// Returns the folder with the environment of the Python that a search path leads to: the one with the folder of its programs.
fn environment_of_python(path: &Path) -> Option<PathBuf> {
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let programs = folders.find(|folder| folder.join("python3").exists())?;
    programs.parent().map(Path::to_owned)
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

/// Sorts libraries: those of the driver's major version, those of any, older ones, and newer ones, which the driver may not
/// support.
fn prefer_version(found: &mut [PathBuf], driver: i32) {
    let rank = |path: &PathBuf| match major_of(path).map(|major| major.cmp(&driver)) {
        Some(Ordering::Equal) => 0,
        None => 1,
        Some(Ordering::Less) => 2,
        Some(Ordering::Greater) => 3,
    };
    // Stable: otherwise in the order of the folders.
    found.sort_by_key(rank);
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
    fn the_drivers_major_version_comes_first_wherever_it_is() {
        let mut paths = [
            "libcupti.so.13",
            "libcupti.so.12",
            "libcupti.so.11.8",
            "libcupti.so",
            "/of/cuda_cupti/lib/libcupti.so.12",
            "/of/cu13/lib/libcupti.so.13",
        ]
        .map(PathBuf::from);
        prefer_version(&mut paths, 12);
        assert_eq!(
            paths,
            [
                "libcupti.so.12",
                "/of/cuda_cupti/lib/libcupti.so.12",
                "libcupti.so",
                "libcupti.so.11.8",
                "libcupti.so.13",
                "/of/cu13/lib/libcupti.so.13",
            ]
            .map(PathBuf::from)
        );
        prefer_version(&mut paths, 13);
        assert_eq!(paths[1], Path::new("/of/cu13/lib/libcupti.so.13"));
    }

    #[cfg(unix)]
    #[test]
    fn a_library_that_a_package_has_renamed_is_found_in_the_process() {
        let maps = "\
7f1c00000000-7f1c00100000 r-xp 00000000 fe:00 42 /venv/lib/torch.libs/libcupti-0b6b3e5f.so.12.4.127
7f1c00100000-7f1c00200000 rw-p 00100000 fe:00 42 /venv/lib/torch.libs/libcupti-0b6b3e5f.so.12.4.127
7f1c00300000-7f1c00400000 r-xp 00000000 fe:00 43 /usr/lib/a folder/libcupti.so.2024.1.0
7f1c00500000-7f1c00600000 r-xp 00000000 fe:00 44 /usr/lib/libcuptitools.so
7f1c00700000-7f1c00800000 r-xp 00000000 fe:00 45 /usr/lib/libcupti.txt
7f1c00900000-7f1c00a00000 rw-p 00000000 00:00 0 [heap]
7f1c00b00000-7f1c00c00000 rw-p 00000000 00:00 0";
        let expected = [
            "/venv/lib/torch.libs/libcupti-0b6b3e5f.so.12.4.127",
            "/usr/lib/a folder/libcupti.so.2024.1.0",
        ];
        assert_eq!(mapped(maps), expected.map(PathBuf::from));
    }

    #[cfg(unix)]
    #[test]
    fn packages_of_the_python_on_the_search_path_are_searched() {
        let name = format!("profiler-cupti-path-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let packages = folder.join("lib/python3.12/site-packages/nvidia/cu13/lib");
        let programs = folder.join("bin");
        for made in [&packages, &programs] {
            std::fs::create_dir_all(made).expect("a folder");
        }
        let path = format!("here:/no/such/folder:{}:/usr/bin", programs.display());
        let variable = |name: &str| (name == "PATH").then(|| PathBuf::from(&path));
        assert!(
            !folders(&variable).contains(&packages),
            "there is no Python"
        );
        std::fs::write(programs.join("python3"), "a program").expect("a file");
        assert!(folders(&variable).contains(&packages));
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
}
