//! Values that are paths, and words in their place.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Makes a path absolute: the program may change its working directory before the path is used.
pub(super) fn absolute(path: &OsStr) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
}

/// The words that are taken for the name of a file by mistake: they say that one is wanted, or in which format.
const NO_NAMES: [&str; 22] = [
    "-", "1", "chrome", "csv", "file", "folded", "html", "json", "on", "pb", "perfetto", "pftrace",
    "prof", "prom", "stderr", "stdout", "table", "text", "trace", "true", "txt", "yes",
];
/// The words for no file.
const OFF: [&str; 5] = ["0", "false", "no", "none", "off"];

/// The path of a file or a folder, or a word for none.
pub(super) enum PathOrOff {
    Path(PathBuf),
    Off,
}

fn is_word(value: &OsStr, words: &[&str]) -> bool {
    let text = value.to_str().map(|text| text.trim().to_ascii_lowercase());
    text.is_some_and(|text| words.contains(&&*text))
}

/// Returns `true` for a word that is no name of a file.
pub(super) fn is_no_name(value: &OsStr) -> bool {
    is_word(value, &NO_NAMES)
}

/// Reads the path of a file or a folder, or a word for none. Returns `None` for other words that are no names.
pub(super) fn path_or_off(value: &OsStr) -> Option<PathOrOff> {
    if is_no_name(value) {
        None
    } else if is_word(value, &OFF) {
        Some(PathOrOff::Off)
    } else {
        Some(PathOrOff::Path(absolute(value)))
    }
}

/// Says what to write in place of a word that is no name: the noun for what it would name, and an example.
pub(super) fn example(variable: &str, word: &str) -> (&'static str, String) {
    let word = word.trim().to_ascii_lowercase();
    let file = match (variable, &*word) {
        ("PROFILER_TENSORBOARD", _) => return ("a folder", "runs".to_owned()),
        ("PROFILER_TRACE", "pftrace" | "perfetto") => "run.pftrace".to_owned(),
        ("PROFILER_SUMMARY", "table" | "text" | "txt") => "run.txt".to_owned(),
        ("PROFILER_SUMMARY", "pb") => "run.pb.gz".to_owned(),
        ("PROFILER_SUMMARY", "csv" | "folded" | "html" | "prof" | "prom") => format!("run.{word}"),
        _ => "run.json".to_owned(),
    };
    ("a file", file)
}
