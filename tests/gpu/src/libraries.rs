//! Finds CUDA libraries that are not part of the driver: those of a toolkit or of a Python package.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::driver::in_full;

/// Loads the library that a variable names, else the first of these names that is found.
pub(crate) fn open_or_named(
    variable: &str,
    names: &[&str],
    package: &str,
) -> Result<(&'static Library, String), String> {
    let Some(path) = std::env::var_os(variable) else {
        return open(names, package);
    };
    // SAFETY: the user says that it is NVIDIA's library or one that stands in for it. It is never unloaded.
    let library = unsafe { Library::new(&path) }.map_err(|error| {
        format!(
            "the library in {variable} cannot be loaded ({})",
            in_full(&error)
        )
    })?;
    Ok((Box::leak(Box::new(library)), path.display().to_string()))
}

/// Loads the first library of these names that is found. Returns it with its path.
pub(crate) fn open(names: &[&str], package: &str) -> Result<(&'static Library, String), String> {
    let mut said = String::new();
    // First by its bare name: the library on the user's library path takes precedence.
    let bare = names.iter().map(PathBuf::from);
    let folders = folders(package);
    let placed = folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    for path in bare.chain(placed.filter(|path| path.exists())) {
        // SAFETY: these are NVIDIA's libraries, which any program may load. None is ever unloaded.
        match unsafe { Library::new(&path) } {
            Ok(library) => {
                let library = Box::leak(Box::new(library));
                return Ok((library, path.display().to_string()));
            }
            Err(error) if said.is_empty() => said = in_full(&error),
            Err(_) => {}
        }
    }
    Err(format!("{} was not found ({said})", names[0]))
}

fn folders(package: &str) -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(variable)
        .collect();
    toolkits.extend(inside(Path::new("/usr/local"), "cuda"));
    toolkits.extend(inside(Path::new("/opt"), "cuda"));
    let parts = [
        "lib64",
        "lib",
        "extras/CUPTI/lib64",
        "targets/x86_64-linux/lib",
    ];
    let mut folders: Vec<PathBuf> = toolkits
        .iter()
        .flat_map(|toolkit| parts.map(|part| toolkit.join(part)))
        .collect();
    let mut roots = vec![PathBuf::from("/usr"), PathBuf::from("/usr/local")];
    roots.extend(
        ["VIRTUAL_ENV", "CONDA_PREFIX"]
            .into_iter()
            .filter_map(variable),
    );
    for root in roots {
        for python in inside(&root.join("lib"), "python3") {
            for site in ["site-packages", "dist-packages"] {
                let nvidia = python.join(site).join("nvidia");
                // One folder per package up to CUDA 12, one for all from 13 on.
                folders.extend([nvidia.join(package).join("lib"), nvidia.join("cu13/lib")]);
            }
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
