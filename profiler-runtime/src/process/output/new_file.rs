//! A file that is there when it is whole: written under another name in the same folder, then renamed. What is no file
//! but a device or a pipe stays what it is, and is written to.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Output, Wait};

/// Where what the process has open stands, which may be a file: that is written to as well.
const DESCRIPTORS: [&str; 4] = ["/dev/fd", "/dev/stderr", "/dev/stdout", "/proc"];
/// Bytes of a name that is part of the one it is written under.
const LONGEST: usize = 200;

fn is_descriptor(path: &Path) -> bool {
    DESCRIPTORS.iter().any(|known| path.starts_with(known))
}

/// A file in the making; given up, with all that was written, where it is not finished.
pub(crate) struct NewFile {
    output: Option<Output>,
    /// Where it is written, and what it is to be called; none where that is no file.
    renamed: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// # Errors
    ///
    /// The system's; [`io::ErrorKind::TimedOut`] where `path` is a FIFO that nobody opens to read.
    pub(crate) fn create(path: &Path, wait: Wait) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path does not end with the name of a file",
            ));
        };
        let before = fs::metadata(path).ok();
        let is_other = |kind: &fs::Metadata| !kind.is_file() && !kind.is_dir();
        if is_descriptor(path) || before.as_ref().is_some_and(is_other) {
            return Self::in_place(open_other(path, wait)?, wait);
        }
        if before.is_none() && fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink()) {
            // It leads to a file that is not there: the file is made, and the link stays.
            return Self::in_place(File::create(path)?, wait);
        }
        // A link goes on to lead to the file.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or(name).to_owned();
        let (file, temporary) = create_beside(&path, &name)?;
        let mut new = Self {
            output: None,
            renamed: Some((temporary, path)),
        };
        if let Some(before) = before {
            // Whoever could read it still can. Where this fails, it has the mode that new files have.
            let _ = file.set_permissions(plain(&before));
        }
        new.output = Some(Output::new(file, wait)?);
        Ok(new)
    }

    fn in_place(file: File, wait: Wait) -> io::Result<Self> {
        Ok(Self {
            output: Some(Output::new(file, wait)?),
            renamed: None,
        })
    }

    /// Gives the file its name, which another one may have had.
    ///
    /// # Errors
    ///
    /// The system's, where it cannot be renamed.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        // Closed first: some file systems write, and fail, only then.
        drop(self.output.take());
        match self.renamed.take() {
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

/// Writes `bytes` to `path` as a [`NewFile`], or in place where the folder does not allow for that: a file that can be
/// written, in a folder that cannot, or one that is a mount point of its own.
///
/// # Errors
///
/// As [`NewFile::create`], and the system's where the file cannot be written. What was there before is lost only by a
/// failure in place.
pub(crate) fn write(path: &Path, bytes: &[u8], wait: Wait) -> io::Result<()> {
    let new = NewFile::create(path, wait);
    let replaced = match new {
        Ok(mut new) => {
            new.output()?.write_whole(bytes)?;
            new.finish()
        }
        Err(error) => Err(error),
    };
    let Err(error) = replaced else { return Ok(()) };
    let is_folders = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
    );
    if !is_folders || !path.is_file() {
        return Err(error);
    }
    let file = OpenOptions::new().write(true).truncate(true).open(path)?;
    Output::new(file, wait)?.write_whole(bytes)
}

/// Opens what is no regular file; a FIFO only waits so long for whoever is to read it.
#[cfg(unix)]
fn open_other(path: &Path, wait: Wait) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    const PAUSE: Duration = Duration::from_millis(5);

    let (Wait::InAll(limit) | Wait::WithoutProgress(limit)) = wait;
    let start = Instant::now();
    loop {
        // Blocking, `open` would not return before a FIFO has a reader.
        let opened = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        let Err(error) = opened else { return opened };
        // Said of a FIFO without a reader, and of a device that is not there.
        let is_alone = error.raw_os_error() == Some(libc::ENXIO)
            && fs::metadata(path).is_ok_and(|kind| kind.file_type().is_fifo());
        if !is_alone {
            return Err(error);
        }
        if start.elapsed() >= limit {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("nobody has opened it to read for {limit:?}"),
            ));
        }
        sleep(PAUSE);
    }
}

/// The permissions without the bits that raise privileges: those were another file's.
#[cfg(unix)]
fn plain(before: &fs::Metadata) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;

    fs::Permissions::from_mode(before.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn plain(before: &fs::Metadata) -> fs::Permissions {
    before.permissions()
}

#[cfg(not(unix))]
fn open_other(path: &Path, _: Wait) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// A new file in the folder of `path`, with a name that nobody reads.
fn create_beside(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Relaxed);
        let mut temporary = OsString::from(".");
        // A name may be as long as the system takes, and has no room for more then.
        if name.len() <= LONGEST {
            temporary.push(name);
        }
        temporary.push(format!(".{}-{number}.part", process::id()));
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
        // What was renamed, or could not be, is not there any more.
        if let Some((temporary, _)) = self.renamed.take() {
            drop(self.output.take());
            let _ = fs::remove_file(temporary);
        }
    }
}
