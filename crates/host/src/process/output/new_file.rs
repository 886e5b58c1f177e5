//! Files that appear only when they are complete: written under another name in the same folder, then renamed.
//!
//! A device, a pipe or an open descriptor cannot be renamed to, and is written to in place.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use super::folder::Open;
use super::place::{Led, Place, is_descriptor};
use super::{Output, WriteTimeout, non_blocking, owners};
use crate::process::platform::{Instant, process_id};

/// The longest name, in bytes, that becomes a part of the temporary name.
const MAX_NAME: usize = 200;
/// How long to wait before a FIFO without a reader is opened again.
const PAUSE: Duration = Duration::from_millis(5);

/// Returns `true` if writing `path` replaces what it names, and does not write to it in place.
pub fn is_replaced(path: &Path) -> bool {
    !is_descriptor(path) && fs::metadata(path).map_or(true, |kind| kind.is_file())
}

/// A file that is being written. It is discarded if it is dropped before [`finish`](Self::finish).
pub struct NewFile {
    output: Option<Output>,
    /// The place of the file and its temporary name, or `None` if the target is written in place.
    place: Option<(Box<Place>, OsString)>,
}

impl NewFile {
    /// Creates the file that `path` will name.
    ///
    /// # Errors
    ///
    /// Returns the system's error, [`io::ErrorKind::TimedOut`] if `path` is a FIFO that no reader opens, and the errors of
    /// [`Place::of`].
    pub fn create(path: &Path, timeout: WriteTimeout) -> io::Result<Self> {
        match Led::by(path)? {
            Led::Descriptor(path) => {
                let is_fifo = fs::metadata(&path).is_ok_and(|about| owners::is_fifo(&about));
                let open = || non_blocking(OpenOptions::new().append(true)).open(&path);
                Self::in_place(open_other(open, is_fifo, timeout)?, timeout)
            }
            Led::To(place) if place.is_folder() => Err(io::ErrorKind::IsADirectory.into()),
            Led::To(place) if place.is_replaced() => Self::beside(place, timeout),
            Led::To(place) => {
                let open = || place.open(Open::InPlace);
                Self::in_place(open_other(open, place.is_fifo(), timeout)?, timeout)
            }
        }
    }

    fn beside(place: Box<Place>, timeout: WriteTimeout) -> io::Result<Self> {
        let (file, temporary) = create_beside(&place)?;
        let mut new = Self {
            output: None,
            place: Some((place, temporary)),
        };
        new.output = Some(Output::new(file, timeout)?);
        Ok(new)
    }

    fn in_place(file: File, timeout: WriteTimeout) -> io::Result<Self> {
        Ok(Self {
            output: Some(Output::new(file, timeout)?),
            place: None,
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
        match self.place.take() {
            Some((place, temporary)) => place.rename_from(&temporary).inspect_err(|_| {
                let _ = place.remove_beside(&temporary);
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
    let replaced = NewFile::create(path, timeout).and_then(|mut new| {
        new.output()?.write_whole(bytes)?;
        new.finish()
    });
    let Err(error) = replaced else { return Ok(()) };
    let is_of_folder = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
    );
    // A place that was refused is refused again.
    match Led::by(path) {
        Ok(Led::To(place)) if is_of_folder && place.is_file() => {
            Output::new(place.open(Open::Whole)?, timeout)?.write_whole(bytes)
        }
        _ => Err(error),
    }
}

/// Opens a target that is not a regular file. A blocking `open` of a FIFO would not return before it has a reader: waits for
/// it until the timeout.
fn open_other(
    open: impl Fn() -> io::Result<File>,
    is_fifo: bool,
    timeout: WriteTimeout,
) -> io::Result<File> {
    let limit = timeout.duration();
    let start = Instant::now();
    loop {
        let opened = open();
        let lacks_reader =
            matches!(&opened, Err(error) if is_fifo && error.raw_os_error() == NO_READER);
        if !lacks_reader {
            return opened;
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

/// The error of a FIFO without a reader.
#[cfg(unix)]
const NO_READER: Option<i32> = Some(libc::ENXIO);
#[cfg(not(unix))]
const NO_READER: Option<i32> = None;

/// Creates a hidden file with a unique name beside a place.
fn create_beside(place: &Place) -> io::Result<(File, OsString)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Relaxed);
        let mut temporary = OsString::from(".");
        // A name may be as long as the system allows: then the temporary name leaves it out.
        if place.name().len() <= MAX_NAME {
            temporary.push(place.name());
        }
        temporary.push(format!(".{}-{number}.part", process_id()));
        match place.create_beside(&temporary) {
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
        // `finish` has taken the place: the file was renamed, or removed.
        if let Some((place, temporary)) = self.place.take() {
            drop(self.output.take());
            let _ = place.remove_beside(&temporary);
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

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

    /// Returns the permissions of all files of a folder.
    fn modes(folder: &Folder) -> Vec<u32> {
        let modes = folder.names().into_iter().map(|name| {
            let about = fs::metadata(folder.0.join(name)).expect("it is there");
            about.permissions().mode() & 0o7777
        });
        modes.collect()
    }

    #[test]
    fn a_file_that_replaces_a_private_one_is_private_from_its_creation() {
        let folder = Folder::new("private");
        let path = folder.0.join("file");
        fs::write(&path, "before").expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4600)).expect("its own");
        let Ok(Led::To(place)) = Led::by(&path) else {
            panic!("it is a file");
        };
        let name = OsString::from("new");
        // As it is created, before anything sets its permissions.
        let mode = owners::at_creation(fs::metadata(&path).ok().as_ref());
        assert_eq!(mode, 0o600);
        place.create_beside(&name).expect("a new file");
        assert_eq!(modes(&folder), [0o4600, 0o600]);
        write(&path, b"after", TIMEOUT).expect("it is written");
        assert_eq!(modes(&folder), [0o600, 0o600]);
    }

    #[test]
    fn links_and_folders_of_links_are_followed_and_a_ring_of_links_is_not() {
        let folder = Folder::new("chain");
        fs::create_dir(folder.0.join("inner")).expect("a folder");
        symlink("inner/../inner/second", folder.0.join("first")).expect("a link");
        symlink("third", folder.0.join("inner/second")).expect("a link");
        write(&folder.0.join("first"), b"text", TIMEOUT).expect("it is written");
        let written = folder.0.join("inner/third");
        assert_eq!(fs::read(&written).expect("it is there"), b"text");
        symlink("ring", folder.0.join("ring")).expect("a link");
        assert!(write(&folder.0.join("ring"), b"", TIMEOUT).is_err());
        symlink("/dev/fd/nothing", folder.0.join("descriptor")).expect("a link");
        let led = Led::by(&folder.0.join("descriptor")).expect("it is a descriptor");
        assert!(matches!(led, Led::Descriptor(_)), "{led:?}");
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
