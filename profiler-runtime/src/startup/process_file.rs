//! Names of files that several processes may have been told to write.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use profiler_host::process::platform::process_id;
use profiler_host::rank::own_rank;

use crate::clock::clock;

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

/// Returns `true` if a file has been written since this process began. The system's times of files may be some milliseconds
/// behind its clock, so one that was written just after the beginning may count as older.
pub(super) fn is_of_this_run(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|file| file.modified());
    written.is_ok_and(|written| written >= clock().began())
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
