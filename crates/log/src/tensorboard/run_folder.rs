//! The folder of a run: `TensorBoard` shows a folder as one run, so the values of two runs in one folder would be one zigzag.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use profiler_host::process::host;
use profiler_host::process::platform::process_id;

use super::seconds_since_epoch;

/// What the names of event files begin with.
pub(super) const BEGINNING: &str = "events.out.tfevents.";

/// How many folders are tried.
const MAX_TRIES: u32 = 10_000;

/// Returns the folder for a run that is to go to `dir`: that, or if it has event files of another process the first of `dir_2`,
/// `dir_3` and so on that has none.
pub(super) fn choose(dir: &Path) -> PathBuf {
    let own = Own::new();
    let beside = |number: u32| match dir.file_name() {
        Some(name) => {
            let mut name = name.to_owned();
            name.push(format!("_{number}"));
            dir.with_file_name(name)
        }
        // The current folder, whose name is not known here.
        None => dir.join(format!("run_{number}")),
    };
    let mut beside = (2..MAX_TRIES).map(beside);
    let free = |dir: &Path| !has_files_of_others(dir, &own);
    if free(dir) {
        return dir.to_owned();
    }
    beside
        .find(|dir| free(dir))
        .unwrap_or_else(|| dir.to_owned())
}

/// What the names of this process's files say.
struct Own {
    host: String,
    process: u32,
    /// When this process opened its first log. An earlier file has the number of a process that has ended: in a container, the
    /// first one is always 1.
    since: u64,
}

impl Own {
    fn new() -> Self {
        static SINCE: AtomicU64 = AtomicU64::new(0);

        let now = seconds_since_epoch(SystemTime::now()).max(1.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of seconds since 1970"
        )]
        let now = now as u64;
        let since = match SINCE.compare_exchange(0, now, Relaxed, Relaxed) {
            Ok(_) => now,
            Err(first) => first,
        };
        Self {
            host: host::name(),
            process: process_id(),
            since,
        }
    }

    /// Returns `true` for the name of an event file that says that another process writes it. Names without the number of
    /// a process may be those of another writer in this one.
    fn is_of_another(&self, name: &OsStr) -> bool {
        let parts = || {
            let (seconds, rest) = name.to_str()?.strip_prefix(BEGINNING)?.split_once('.')?;
            let (rest, number) = rest.rsplit_once('.')?;
            let (host, process) = rest.rsplit_once('.')?;
            number.parse::<u64>().ok()?;
            Some((
                seconds.parse::<u64>().ok()?,
                host,
                process.parse::<u32>().ok()?,
            ))
        };
        parts().is_some_and(|(seconds, host, process)| {
            (host, process) != (self.host.as_str(), self.process) || seconds < self.since
        })
    }
}

fn has_files_of_others(dir: &Path, own: &Own) -> bool {
    // A folder that is not there, or cannot be read, is one that creating the file says more of.
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .any(|name| own.is_of_another(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_whether_another_process_writes_a_file() {
        let own = Own {
            host: "node.cluster".to_owned(),
            process: 1,
            since: 100,
        };
        for (name, expected) in [
            ("events.out.tfevents.0000000100.node.cluster.1.0", false),
            ("events.out.tfevents.0000000101.node.cluster.1.7", false),
            // An earlier container with this name, another process, and another machine.
            ("events.out.tfevents.0000000099.node.cluster.1.0", true),
            ("events.out.tfevents.0000000100.node.cluster.2.0", true),
            ("events.out.tfevents.0000000100.other.1.0", true),
            // Writers that do not say their process.
            ("events.out.tfevents.0000000001.node.cluster", false),
            ("events.out.tfevents.0000000001.node.cluster.v2", false),
            ("summary.json", false),
        ] {
            assert_eq!(own.is_of_another(OsStr::new(name)), expected, "{name}");
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn a_run_gets_the_first_folder_that_no_other_run_has() {
        let folder = std::env::temp_dir().join(format!("profiler-run-folder-{}", process_id()));
        let dir = folder.join("first");
        assert_eq!(choose(&dir), dir, "it need not exist");
        for expected in ["first_2", "first_3"] {
            let taken = choose(&dir);
            fs::create_dir_all(&taken).expect("a folder");
            let name = format!("{BEGINNING}0000000001.other.{}.0", process_id());
            fs::write(taken.join(name), "").expect("room");
            assert_eq!(choose(&dir), folder.join(expected));
        }
        fs::remove_dir_all(folder).expect("it is the test's own");
    }
}
