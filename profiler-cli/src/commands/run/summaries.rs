//! The summaries of one run: each process of the program writes its own.
//!
//! They have the name of the run, and a suffix if the process has a rank or another one has written before it.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use profiler_report::Summary;
use profiler_report::internal::InOrder as _;

use crate::input::{Input, Limits};

/// The folder, beside the summaries, for those of further processes. `diff` does not look into it.
pub(super) const OTHERS: &str = "others";

/// Gives the summary of the program the name of the run, and moves those of the processes that it started to a folder. The
/// program is the process that was started here; else (it was a shell, a launcher) that with the lowest rank, or the one
/// that began first. Returns a remark if there was a choice.
pub(super) fn keep_one(folder: &Path, run: &str, started: u32) -> io::Result<Option<String>> {
    let mut files = files_of(folder, run)?;
    let plain = folder.join(format!("{run}.json"));
    if files.len() > 1 {
        files.sort_by_cached_key(|file| place(file, started));
    }
    let Some((kept, others)) = files.split_first() else {
        return Ok(None);
    };
    if !others.is_empty() {
        fs::create_dir_all(folder.join(OTHERS))?;
    }
    for other in others {
        let name = other.file_name().unwrap_or_default();
        fs::rename(other, folder.join(OTHERS).join(name))?;
    }
    let remark = (!others.is_empty()).then(|| {
        let process = summary(kept).map_or(0, |summary| summary.environment.process);
        format!(
            "{} processes wrote summaries; that of process {process} counts, and the others are in {}",
            others.len() + 1,
            folder.join(OTHERS).display()
        )
    });
    if *kept != plain {
        fs::rename(kept, plain)?;
    }
    Ok(remark)
}

/// Removes all summaries of a run.
pub(super) fn remove(folder: &Path, run: &str) {
    for file in files_of(folder, run).unwrap_or_default() {
        let _ = fs::remove_file(file);
    }
}

/// Returns the summaries of a run, that without a suffix first.
fn files_of(folder: &Path, run: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name
            .strip_suffix(".json")
            .and_then(|stem| stem.strip_prefix(run));
        if stem.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('_')) {
            files.push(path);
        }
    }
    files.order_by_key(|path| path.as_os_str().len());
    Ok(files)
}

/// Returns a key by which the summary of the program comes first.
fn place(file: &Path, started: u32) -> (bool, Reverse<bool>, u64, i64) {
    let summary = summary(file);
    let environment = summary.as_ref().map(|summary| &summary.environment);
    let rank = environment.and_then(|environment| environment.rank);
    (
        environment.is_none_or(|environment| environment.process != started),
        Reverse(environment.is_some()),
        rank.unwrap_or(u64::MAX),
        environment.map_or(i64::MAX, |environment| environment.start_unix_ns),
    )
}

fn summary(file: &Path) -> Option<Summary> {
    match Input::read(file, Limits::DEFAULT) {
        Ok(Input::Summary(summary)) => Some(*summary),
        _ => None,
    }
}
