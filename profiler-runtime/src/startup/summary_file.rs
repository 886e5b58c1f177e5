//! The file that `PROFILER_SUMMARY` names, which several processes may have been told to write, or several copies of the
//! profiler in one process.
//!
//! A copy keeps the name that it has chosen as long as the file there is the one that it wrote last. Otherwise it takes the
//! first name whose file may be replaced, and that nobody has written since the process began: with the rank if there is one,
//! with the process id, and with numbers. From the choice to the end of the write it holds the lock of the folder, so that two
//! that write at once choose different names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use profiler_host::diagnostics;
use profiler_host::process::output::folder_lock::FolderLock;
use profiler_host::process::output::{WriteTimeout, new_file};
use profiler_host::sync::Lock;
use profiler_report::Summary;
use profiler_report::internal::{SummaryFormat, second_file, write_summary};

use super::process_file::{make_folder, obstacle, suffixes, with_suffix, written_meanwhile};

/// The file that this copy of the profiler wrote last.
/// How long a write waits for others of the folder: no write takes as long.
const LONGEST_LOCK: Duration = Duration::from_millis(200);

static LAST: Lock<Option<Written>> = Lock::new(None);

#[derive(Clone, Debug)]
struct Written {
    /// The path that the setting names.
    named: PathBuf,
    path: PathBuf,
    identity: Option<Identity>,
}

/// What tells a file from one that another writer has put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    modified: Option<SystemTime>,
    bytes: u64,
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;

        let file = fs::metadata(path).ok()?;
        Some(Self {
            modified: file.modified().ok(),
            bytes: file.len(),
            #[cfg(unix)]
            inode: (file.dev(), file.ino()),
        })
    }
}

/// Writes a summary to the file that a setting names, or beside it. Returns the files that it wrote; none if a
/// stream or a device has the name.
///
/// # Errors
///
/// Returns the system's error if the file cannot be written.
pub(super) fn write(
    named: &Path,
    summary: &Summary,
    timeout: WriteTimeout,
) -> io::Result<Vec<PathBuf>> {
    // The write says why it cannot be made.
    let _ = make_folder(named);
    if !new_file::is_replaced(named) && obstacle(named).is_none() {
        return write_summary(summary, named, timeout).map(|()| Vec::new());
    }
    let (path, reason) = {
        // Others may hold it for as long as they like: without it, two processes may choose one name.
        let _alone = FolderLock::of(named, timeout.duration().min(LONGEST_LOCK));
        let last = LAST.lock().clone();
        let last = last.filter(|last| last.named == named);
        let (path, reason) = choose(named, last.as_ref())?;
        write_summary(summary, &path, timeout)?;
        *LAST.lock() = Some(Written {
            named: named.to_owned(),
            path: path.clone(),
            identity: Identity::of(&path),
        });
        (path, reason)
    };
    if let Some(reason) = reason {
        let path = path.display();
        diagnostics::warn_once(&format!("{reason}: the summary goes to {path}"));
    }
    let has_gpu_times = summary.rows.iter().any(|row| row.cuda.is_some());
    let second = second_file(&path).filter(|_| has_gpu_times);
    Ok([path].into_iter().chain(second).collect())
}

/// Chooses the path that this copy of the profiler writes to. Returns it with the reason if it is not the one that was asked
/// for.
///
/// # Errors
///
/// Returns the reason if no name is free.
fn choose(named: &Path, last: Option<&Written>) -> io::Result<(PathBuf, Option<String>)> {
    if let Some(last) = last {
        let now = Identity::of(&last.path);
        if now.is_none() || now == last.identity {
            return Ok((last.path.clone(), None));
        }
    }
    let mut reason = None;
    for suffix in suffixes() {
        let path = with_suffix(named, endings(named), &suffix);
        // The file that it wrote last is gone.
        let is_others = last.is_some_and(|last| last.path == path);
        let others = is_others.then(|| written_meanwhile(&path));
        let second = || second_file(&path).and_then(|second| obstacle(&second));
        match others.or_else(|| obstacle(&path)).or_else(second) {
            None => return Ok((path, reason)),
            Some(obstacle) => reason = reason.or(Some(obstacle)),
        }
    }
    Err(io::Error::other(reason.unwrap_or_default()))
}

/// Returns how many extensions of the name are its format.
fn endings(path: &Path) -> usize {
    SummaryFormat::ending(path).matches('.').count()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::super::process_file::{id_suffix, rank_suffix};
    use super::*;

    const TIMEOUT: WriteTimeout = WriteTimeout::Total(std::time::Duration::from_secs(60));

    /// Writes a file as another copy of the profiler does, and dates it by the clock: the system may date it by its last tick,
    /// before this process began.
    fn write_now(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now()).unwrap();
    }

    #[test]
    fn each_copy_of_the_profiler_in_a_process_has_a_name_of_its_own() {
        // The time when this process began, before the files.
        crate::clock::clock();
        let folder = std::env::temp_dir().join(format!("profiler-summary-file{}", id_suffix()));
        fs::create_dir_all(&folder).unwrap();
        let named = folder.join("s.pb.gz");
        let rank = rank_suffix().unwrap_or_default();
        let name = |suffix: &str| folder.join(format!("s{rank}{suffix}.pb.gz"));
        let id = id_suffix();
        for expected in [
            String::new(),
            id.clone(),
            format!("{id}_2"),
            format!("{id}_3"),
        ] {
            // As a copy that has written nothing, beside the files of others.
            let (path, reason) = choose(&named, None).unwrap();
            assert_eq!(path, name(&expected));
            assert_eq!(reason.is_some(), !expected.is_empty());
            write_now(&path, &expected);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_copy_replaces_its_own_file_and_no_other() {
        crate::clock::clock();
        let folder = std::env::temp_dir().join(format!("profiler-own-summary{}", id_suffix()));
        fs::create_dir_all(&folder).unwrap();
        let named = folder.join("s.json");
        write(&named, &Summary::default(), TIMEOUT).unwrap();
        write(&named, &Summary::default(), TIMEOUT).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let own = LAST.lock().clone().unwrap().path;
        write_now(&own, "another's");
        write(&named, &Summary::default(), TIMEOUT).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "another's");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
