//! Names of files that several processes may have been told to write, and whether a file may be replaced.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use profiler_host::process::output::{Existing, Place};
use profiler_host::process::platform::process_id;
use profiler_host::rank::own_rank;
use profiler_report::internal::is_written_by_profiler;

use crate::clock::clock;

/// How many names are tried. The first ones are free unless someone has taken them on purpose.
const MAX_NAMES: usize = 1000;

/// Returns the path with a suffix before the last `endings` extensions of its name.
pub(super) fn with_suffix(path: &Path, endings: usize, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let mut extensions = Vec::new();
    for _ in 0..endings {
        if let Some((stem, extension)) = split(&name) {
            extensions.push(extension);
            name = stem;
        }
    }
    name.push(suffix);
    for extension in extensions.iter().rev() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Splits a name before its last dot, unless that is its first character.
pub(super) fn split(name: &OsStr) -> Option<(OsString, OsString)> {
    let name = Path::new(name);
    Some((name.file_stem()?.to_owned(), name.extension()?.to_owned()))
}

/// Returns what distinguishes the files of this process from those of other processes with the same variables, if a
/// launcher has given it a rank.
pub(super) fn rank_suffix() -> Option<String> {
    own_rank().map(|rank| format!("_rank{rank}"))
}

/// Returns what distinguishes the files of this process from those of any other that runs.
pub(super) fn id_suffix() -> String {
    format!("_{}", process_id())
}

/// Returns the suffixes that a file of this process may have, in the order in which they are tried: the rank if there is one,
/// the process id, and numbers.
pub(super) fn suffixes() -> impl Iterator<Item = String> {
    let rank = rank_suffix().unwrap_or_default();
    let of_process = rank.clone() + &id_suffix();
    let numbered = of_process.clone();
    let numbered = (2..).map(move |number| format!("{numbered}_{number}"));
    [rank, of_process]
        .into_iter()
        .chain(numbered)
        .take(MAX_NAMES)
}

/// Returns why a file is not written to; `None` if it may be.
pub(super) fn obstacle(path: &Path) -> Option<String> {
    if is_of_this_run(path) {
        return Some(written_meanwhile(path));
    }
    let existing =
        Place::of(path).and_then(|place| place.map_or(Ok(None), |place| place.existing()));
    match existing {
        Ok(Some(existing)) => objection(path, &existing),
        Err(error) if error.raw_os_error().is_none() => Some(error.to_string()),
        // Replacing a file takes no right to read it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(format!(
            "{} cannot be read ({error}), and is kept: it may be anybody's",
            path.display()
        )),
        // The write fails with the same error of the system.
        Ok(None) | Err(_) => None,
    }
}

/// Says that another writer has written a file.
pub(super) fn written_meanwhile(path: &Path) -> String {
    format!(
        "another process, or another copy of the profiler in this one, has written {} since this process began",
        path.display()
    )
}

/// Returns why a file is not replaced, since a variable may name anything.
fn objection(path: &Path, existing: &Existing) -> Option<String> {
    let path_name = path.display();
    let is_own = is_written_by_profiler(path, &existing.file).unwrap_or(false);
    // Where file systems have no permissions, all files can be run. No program begins as the profiler's files do.
    let is_empty = existing.file.metadata().is_ok_and(|file| file.len() == 0);
    if existing.is_executable && (is_empty || !is_own) {
        return Some(format!("{path_name} is a program, and is not replaced"));
    }
    (!is_own).then(|| format!("{path_name} was not written by the profiler, and is not replaced"))
}

/// Creates the folder of a file if only this one is missing.
///
/// # Errors
///
/// Returns the folder and the system's error if it is missing and cannot be created.
pub(super) fn make_folder(path: &Path) -> Result<(), (PathBuf, io::Error)> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            match fs::create_dir(folder) {
                // Another process has just made it.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    Err((folder.to_owned(), error))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns `true` if a file has been written since this process began. The system's times of files may be some milliseconds
/// behind its clock, so one that was written just after the beginning may count as older.
fn is_of_this_run(path: &Path) -> bool {
    let written = fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .and_then(|file| file.modified().ok());
    written.is_some_and(|written| written >= clock().began())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_stands_before_the_endings() {
        for (path, endings, expected) in [
            ("trace.json", 1, "trace_2.json"),
            ("a/b.c/trace.json.gz", 2, "a/b.c/trace_2.json.gz"),
            ("trace.v1.JSON.GZ", 2, "trace.v1_2.JSON.GZ"),
            ("a/summary", 0, "a/summary_2"),
            (".json", 1, ".json_2"),
        ] {
            let path = with_suffix(Path::new(path), endings, "_2");
            assert_eq!(path, Path::new(expected));
        }
    }
}
