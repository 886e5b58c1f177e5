//! The files that variables have asked for, which one line on standard error names at the end of the program.

use std::env;
use std::path::{Path, PathBuf};

use profiler_host::diagnostics::printable;
use profiler_host::process::output::{Output, READER_TIMEOUT, WriteTimeout};
use profiler_host::sync::Lock;

/// The most files that are named; of others, the number is said.
const MAX_NAMED: usize = 4;

static WRITTEN: Lock<Written> = Lock::new(Written {
    unnamed: Vec::new(),
    others: 0,
});

#[derive(Default)]
struct Written {
    /// The files that no line has named yet.
    unnamed: Vec<PathBuf>,
    /// How many more there are.
    others: usize,
}

/// Notes a file that was written because a variable asked for it.
pub(super) fn note(path: PathBuf) {
    let mut written = WRITTEN.lock();
    if written.unnamed.contains(&path) {
        return;
    }
    if written.unnamed.len() < MAX_NAMED {
        written.unnamed.push(path);
    } else {
        written.others += 1;
    }
}

/// Names the files that were written since the last line.
pub(super) fn say() {
    let line = {
        let mut written = WRITTEN.lock();
        let paths = std::mem::take(&mut written.unnamed);
        line(&paths, std::mem::take(&mut written.others))
    };
    if let Some(line) = line {
        // If nothing takes it, the files are there all the same.
        let _ = Output::stderr(WriteTimeout::Total(READER_TIMEOUT)).write_whole(line.as_bytes());
    }
}

fn line(paths: &[PathBuf], others: usize) -> Option<String> {
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let (last, first) = names.split_last()?;
    let names = match (first, others) {
        ([], 0) => last.clone(),
        (_, 0) => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {others} more", names.join(", ")),
    };
    Some(format!("profiler: wrote {names}\n"))
}

/// Returns the path as a user may have written it: from the current folder if it is in that.
fn name(path: &Path) -> String {
    let here = env::current_dir().ok();
    let inside = here.and_then(|here| path.strip_prefix(here).ok());
    printable(&inside.unwrap_or(path).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_some_files_and_counts_the_others() {
        let paths = ["/a/s.json", "/a/t.json", "/b\n"].map(PathBuf::from);
        for (named, others, expected) in [
            (0, 0, None),
            (1, 0, Some("profiler: wrote /a/s.json\n")),
            (2, 0, Some("profiler: wrote /a/s.json and /a/t.json\n")),
            (
                3,
                0,
                Some("profiler: wrote /a/s.json, /a/t.json and /b\u{fffd}\n"),
            ),
            (
                2,
                7,
                Some("profiler: wrote /a/s.json, /a/t.json and 7 more\n"),
            ),
        ] {
            assert_eq!(line(&paths[..named], others).as_deref(), expected);
        }
    }
}
