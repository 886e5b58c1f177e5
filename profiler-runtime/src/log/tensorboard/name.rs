//! Names for event files, and the making of a file nobody else has.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::seconds_since_epoch;
use crate::process::host;
use crate::process::output::{Output, PATIENCE, Wait};

/// How many names are tried; more than one is taken only where clocks, hosts and process numbers
/// repeat, as in containers that share a folder.
const MOST_NAMES: usize = 10_000;

/// Makes a new file in `dir`, which it makes too where it is missing.
pub(super) fn create_file(dir: &Path) -> io::Result<(Output, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);

    fs::create_dir_all(dir)?;
    let host = host::name();
    let process = process::id();
    for _ in 0..MOST_NAMES {
        let seconds = seconds_since_epoch(SystemTime::now()).max(0.0).floor();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(
            "events.out.tfevents.{seconds:010}.{host}.{process}.{number}"
        ));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((Output::new(file, Wait::InAll(PATIENCE))?, path)),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "every name that was tried is taken",
    ))
}
