//! Names for event files, and the making of a file nobody else has.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::seconds_since_epoch;

/// How many names are tried; more than one is taken only where clocks, hosts and process numbers
/// repeat, as in containers that share a folder.
const MOST_NAMES: usize = 10_000;

const LONGEST_HOST: usize = 64;

/// Makes a new file in `dir`, which it makes too where it is missing.
pub(super) fn create_file(dir: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);

    fs::create_dir_all(dir)?;
    let host = host_name();
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
            Ok(file) => return Ok((file, path)),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "every name that was tried is taken",
    ))
}

/// The host's name as far as it can be had without a system call of its own.
fn host_name() -> String {
    let kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let file = || fs::read_to_string("/etc/hostname").ok();
    let variable = |name| move || env::var(name).ok();
    let name = kernel()
        .or_else(file)
        .or_else(variable("HOSTNAME"))
        .or_else(variable("COMPUTERNAME"))
        .unwrap_or_default();
    tidy_host(&name)
}

/// Keeps what is safe in a file name on every system.
fn tidy_host(name: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let tidy: String = name
        .trim()
        .chars()
        .take(LONGEST_HOST)
        .map(|letter| if safe(letter) { letter } else { '_' })
        .collect();
    if tidy.is_empty() {
        "localhost".to_owned()
    } else {
        tidy
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_HOST, tidy_host};

    #[test]
    fn a_host_name_is_safe_in_a_file_name() {
        assert_eq!(tidy_host("node-7.cluster\n"), "node-7.cluster");
        assert_eq!(tidy_host("../Büro pc"), ".._B_ro_pc");
        assert_eq!(tidy_host(" \n"), "localhost");
        assert_eq!(tidy_host(&"x".repeat(500)).len(), LONGEST_HOST);
    }
}
