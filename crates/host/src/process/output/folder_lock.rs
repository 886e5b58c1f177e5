//! A lock that processes share by the folder that they write to.

use std::path::Path;
use std::time::Duration;

/// A lock of a folder, held until it is dropped, among all processes and copies of the profiler that ask for it.
///
/// It is only advice: who cannot have it in time, or on a file system without locks, goes on without. Other systems than
/// Unix have none.
#[derive(Debug)]
pub struct FolderLock {
    #[cfg(unix)]
    folder: Option<super::own_file::OwnFile>,
}

#[cfg(not(unix))]
impl FolderLock {
    /// Returns at once.
    pub fn of(_file: &Path, _timeout: Duration) -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl FolderLock {
    /// Locks the folder of a file. Waits for others until the timeout.
    pub fn of(file: &Path, timeout: Duration) -> Self {
        use std::fs::File;

        use super::own_file::OwnFile;

        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let opened = File::open(folder).and_then(OwnFile::new).ok();
        Self {
            folder: opened.filter(|folder| lock(folder, timeout)),
        }
    }
}

#[cfg(unix)]
fn lock(folder: &super::own_file::OwnFile, timeout: Duration) -> bool {
    use std::thread::sleep;

    use crate::process::platform::Instant;

    const PAUSE: Duration = Duration::from_millis(2);

    let start = Instant::now();
    loop {
        if flock(folder, libc::LOCK_EX | libc::LOCK_NB) {
            return true;
        }
        let is_taken = std::io::Error::last_os_error().raw_os_error() == Some(libc::EWOULDBLOCK);
        if !is_taken || start.elapsed() >= timeout {
            return false;
        }
        sleep(PAUSE);
    }
}

#[cfg(unix)]
fn flock(folder: &super::own_file::OwnFile, operation: libc::c_int) -> bool {
    use std::os::fd::AsRawFd;

    let Ok(folder) = folder.get() else {
        return false;
    };
    // SAFETY: the descriptor is open, and the call has no pointer.
    unsafe { libc::flock(folder.as_raw_fd(), operation) == 0 }
}

#[cfg(unix)]
impl Drop for FolderLock {
    fn drop(&mut self) {
        // Not only by closing the descriptor: a process that was forked meanwhile has it too.
        if let Some(folder) = &self.folder {
            flock(folder, libc::LOCK_UN);
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock_of_a_folder() {
        let name = format!(
            "profiler-folder-lock-{}",
            crate::process::platform::process_id()
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("file");
        let no_time = Duration::ZERO;
        let first = FolderLock::of(&file, no_time);
        assert!(first.folder.is_some());
        assert!(FolderLock::of(&file, no_time).folder.is_none());
        drop(first);
        assert!(FolderLock::of(&file, no_time).folder.is_some());
        std::fs::remove_dir(&folder).expect("it is empty");
    }

    #[test]
    fn a_folder_that_does_not_exist_has_none() {
        assert!(
            FolderLock::of(Path::new("/nowhere/file"), Duration::ZERO)
                .folder
                .is_none()
        );
    }
}
