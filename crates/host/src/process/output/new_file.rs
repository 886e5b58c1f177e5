//! Files that appear only when they are complete: written under another name in the same folder, then renamed.
//!
//! A device, a pipe or an open descriptor cannot be renamed to, and is written to in place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Output, WriteTimeout};
use crate::process::platform::process_id;

/// Folders of open descriptors. One may be a regular file, which is written to in place too.
const DESCRIPTOR_PATHS: [&str; 4] = ["/dev/fd", "/dev/stderr", "/dev/stdout", "/proc"];
/// The longest name, in bytes, that becomes a part of the temporary name.
const MAX_NAME: usize = 200;

fn is_descriptor(path: &Path) -> bool {
    DESCRIPTOR_PATHS.iter().any(|known| path.starts_with(known))
}

/// Returns `true` if writing `path` replaces what it names, and does not write to it in place.
pub fn is_replaced(path: &Path) -> bool {
    !is_descriptor(path) && fs::metadata(path).map_or(true, |kind| kind.is_file())
}

/// A file that is being written. It is discarded if it is dropped before [`finish`](Self::finish).
pub struct NewFile {
    output: Option<Output>,
    /// The temporary path and the final one, or `None` if the target is written in place.
    paths: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// Creates the file that `path` will name.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or [`io::ErrorKind::TimedOut`] if `path` is a FIFO that no reader opens.
    pub fn create(path: &Path, timeout: WriteTimeout) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path does not end with the name of a file",
            ));
        };
        let before = fs::metadata(path).ok();
        let is_other = |kind: &fs::Metadata| !kind.is_file() && !kind.is_dir();
        if is_descriptor(path) || before.as_ref().is_some_and(is_other) {
            return Self::in_place(open_other(path, timeout)?, timeout);
        }
        if before.is_none() && fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink()) {
            // A dangling link: create the file that it leads to, and keep the link.
            return Self::in_place(File::create(path)?, timeout);
        }
        // Follow a link, so that it keeps leading to the file.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or(name).to_owned();
        let (file, temporary) = create_beside(&path, &name)?;
        let mut new = Self {
            output: None,
            paths: Some((temporary, path)),
        };
        if let Some(before) = before {
            // Keep the permissions of the file that is replaced. If that fails, it has those of new files.
            let _ = file.set_permissions(without_special_bits(&before));
        }
        new.output = Some(Output::new(file, timeout)?);
        Ok(new)
    }

    fn in_place(file: File, timeout: WriteTimeout) -> io::Result<Self> {
        Ok(Self {
            output: Some(Output::new(file, timeout)?),
            paths: None,
        })
    }

    /// Gives the file its name. Replaces a file of that name.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be renamed.
    pub fn finish(mut self) -> io::Result<()> {
        // Close it first: some file systems write, and fail, only then.
        drop(self.output.take());
        match self.paths.take() {
            Some((temporary, path)) => fs::rename(&temporary, path).inspect_err(|_| {
                let _ = fs::remove_file(&temporary);
            }),
            None => Ok(()),
        }
    }

    fn output(&mut self) -> io::Result<&mut Output> {
        self.output
            .as_mut()
            .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

/// Writes `bytes` to `path` as a [`NewFile`]. Writes in place if only the folder prevents that: the file is writable and
/// its folder is not, or the file is a mount point.
///
/// # Errors
///
/// Returns the errors of [`NewFile::create`], and the system's error if the file cannot be written. The previous contents
/// are lost only if a write in place fails.
pub fn write(path: &Path, bytes: &[u8], timeout: WriteTimeout) -> io::Result<()> {
    let new = NewFile::create(path, timeout);
    let replaced = match new {
        Ok(mut new) => {
            new.output()?.write_whole(bytes)?;
            new.finish()
        }
        Err(error) => Err(error),
    };
    let Err(error) = replaced else { return Ok(()) };
    let is_of_folder = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
    );
    if !is_of_folder || !path.is_file() {
        return Err(error);
    }
    let file = OpenOptions::new().write(true).truncate(true).open(path)?;
    Output::new(file, timeout)?.write_whole(bytes)
}

/// Opens a target that is not a regular file. Waits for the reader of a FIFO, until the timeout.
#[cfg(unix)]
fn open_other(path: &Path, timeout: WriteTimeout) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    const PAUSE: Duration = Duration::from_millis(5);

    let limit = timeout.duration();
    let start = Instant::now();
    loop {
        // A blocking `open` of a FIFO would not return before it has a reader.
        let opened = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        let Err(error) = opened else { return opened };
        // The error of a FIFO without a reader, and of a device that does not exist.
        let lacks_reader = error.raw_os_error() == Some(libc::ENXIO)
            && fs::metadata(path).is_ok_and(|kind| kind.file_type().is_fifo());
        if !lacks_reader {
            return Err(error);
        }
        if start.elapsed() >= limit {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no reader has opened it for {limit:?}"),
            ));
        }
        sleep(PAUSE);
    }
}

/// Returns the permissions without the set-user-ID, set-group-ID and sticky bits, which were granted to another file.
#[cfg(unix)]
fn without_special_bits(before: &fs::Metadata) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;

    fs::Permissions::from_mode(before.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn without_special_bits(before: &fs::Metadata) -> fs::Permissions {
    before.permissions()
}

#[cfg(not(unix))]
fn open_other(path: &Path, _: WriteTimeout) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Creates a hidden file with a unique name in the folder of `path`.
fn create_beside(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Relaxed);
        let mut temporary = OsString::from(".");
        // A name may be as long as the system allows: then the temporary name leaves it out.
        if name.len() <= MAX_NAME {
            temporary.push(name);
        }
        temporary.push(format!(".{}-{number}.part", process_id()));
        let temporary = path.with_file_name(temporary);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
        {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, temporary)),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // `finish` has taken the paths: the file was renamed, or removed.
        if let Some((temporary, _)) = self.paths.take() {
            drop(self.output.take());
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    use super::*;

    const TIMEOUT: WriteTimeout = WriteTimeout::Total(Duration::from_secs(60));

    /// An empty folder, removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("profiler-new-file-{}-{name}", process_id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).expect("a new folder");
            Self(path)
        }

        fn names(&self) -> Vec<OsString> {
            let entries = fs::read_dir(&self.0).expect("it is there");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let folder = Folder::new("finished");
        let path = folder.0.join("file");
        fs::write(&path, "before").expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its own");
        let mut new = NewFile::create(&path, TIMEOUT).expect("a new file");
        new.write_all(b"after").expect("it is written");
        assert_eq!(fs::read(&path).expect("it is there"), b"before");
        new.finish().expect("it is renamed");
        assert_eq!(fs::read(&path).expect("it is there"), b"after");
        let mode = fs::metadata(&path)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(folder.names(), ["file"]);
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = Folder::new("dropped");
        let mut new = NewFile::create(&folder.0.join("file"), TIMEOUT).expect("a new file");
        new.write_all(b"half").expect("it is written");
        assert_eq!(folder.names().len(), 1);
        drop(new);
        assert!(folder.names().is_empty());
    }

    #[test]
    fn links_stay_links() {
        let folder = Folder::new("links");
        for target in ["there", "missing"] {
            let (path, link) = (folder.0.join(target), folder.0.join(format!("to-{target}")));
            symlink(target, &link).expect("a link");
            if target == "there" {
                fs::write(&path, "before").expect("it is written");
            }
            write(&link, b"after", TIMEOUT).expect("it is written");
            assert_eq!(fs::read(&path).expect("it is there"), b"after");
            let kind = fs::symlink_metadata(&link).expect("it is there");
            assert!(kind.is_symlink());
        }
    }

    #[test]
    fn names_of_any_length_are_taken_and_folders_are_not() {
        let folder = Folder::new("names");
        let longest = folder.0.join("x".repeat(255));
        write(&longest, b"long", TIMEOUT).expect("it is written");
        assert_eq!(fs::read(longest).expect("it is there"), b"long");
        assert!(write(Path::new("/"), b"", TIMEOUT).is_err());
        assert!(write(&folder.0, b"", TIMEOUT).is_err());
    }

    #[test]
    fn a_fifo_without_a_reader_times_out() {
        let folder = Folder::new("fifo");
        let path = folder.0.join("fifo");
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: the path is a valid C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let error = write(
            &path,
            b"lost",
            WriteTimeout::Total(Duration::from_millis(10)),
        );
        let error = error.expect_err("there is no reader");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    }
}
