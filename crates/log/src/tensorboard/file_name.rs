//! Names of event files, and the creation of a file that no other process writes.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use profiler_host::process::host;
use profiler_host::process::output::{Output, READER_TIMEOUT, WriteTimeout};
use profiler_host::process::platform::process_id;

use super::run_folder::BEGINNING;
use super::seconds_since_epoch;

/// How many names are tried. The first one is free unless clock, host name and process number repeat, as in containers
/// that share a folder.
const MAX_TRIES: usize = 10_000;

/// Creates a new file in `dir`, and `dir` if it does not exist.
pub(super) fn create_file(dir: &Path) -> io::Result<(Output, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);

    fs::create_dir_all(dir)?;
    let host = host::name();
    let process = process_id();
    for _ in 0..MAX_TRIES {
        let seconds = seconds_since_epoch(SystemTime::now()).max(0.0).floor();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(
            "{BEGINNING}{seconds:010}.{host}.{process}.{number}"
        ));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                return Ok((
                    Output::new(file, WriteTimeout::Total(READER_TIMEOUT))?,
                    path,
                ));
            }
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "every name that was tried is taken",
    ))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_new_and_has_the_name_that_tensorboard_looks_for() {
        let dir = std::env::temp_dir().join(format!("profiler-names-{}/deep", process_id()));
        let paths: Vec<_> = (0..3)
            .map(|_| create_file(&dir).expect("the folder is writable").1)
            .collect();
        assert_eq!(fs::read_dir(&dir).expect("it exists").count(), 3);
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.expect("a name in UTF-8");
            assert!(name.starts_with("events.out.tfevents."), "{name}");
            assert!(name.contains(&format!(".{}.", process_id())), "{name}");
        }
        fs::remove_dir_all(dir.parent().expect("a parent")).expect("it is the test's own");
    }
}
