//! A file that stays open in a process that may close any descriptor.
//!
//! Daemons close all descriptors from 3 on, the profiler's among them. The next file that the program opens gets the same
//! number, and a later write of the profiler would go to that file.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{self, ManuallyDrop};
use std::path::Path;

/// The device and inode of a file: which file it is, whatever its name or descriptor.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = ();

/// A file that is used only while its descriptor refers to it.
#[derive(Debug)]
pub(crate) struct OwnFile {
    /// Closed by `drop`, unless the descriptor refers to another file by then.
    file: ManuallyDrop<File>,
    identity: Identity,
}

impl OwnFile {
    /// Takes an open file.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it does not report the metadata of the file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let identity = identity(&file)?;
        Ok(Self {
            file: ManuallyDrop::new(file),
            identity,
        })
    }

    /// Returns `true` if the descriptor still refers to this file.
    ///
    /// Another thread may close it between this check and its use. That window is one system call long; there is no call
    /// that compares and writes at once.
    pub(crate) fn is_intact(&self) -> bool {
        identity(&self.file).is_ok_and(|now| now == self.identity)
    }

    /// Returns `true` if the file was removed, as by a user who clears a folder of old runs.
    #[cfg(unix)]
    pub(crate) fn is_removed(&self) -> bool {
        use std::os::unix::fs::MetadataExt;

        let metadata = self.get().and_then(File::metadata);
        metadata.is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Returns `false`: other systems do not let an open file be removed.
    #[cfg(not(unix))]
    #[allow(clippy::unused_self, reason = "as on Unix")]
    pub(crate) fn is_removed(&self) -> bool {
        false
    }

    /// Returns the file, for immediate use.
    ///
    /// # Errors
    ///
    /// Returns an error if the program has closed the descriptor, or reused its number.
    pub(crate) fn get(&self) -> io::Result<&File> {
        if self.is_intact() {
            Ok(&self.file)
        } else {
            Err(io::Error::other(
                "the program has closed the file's descriptor, which is not its own",
            ))
        }
    }

    /// Opens the file again by its path, if that still leads to the same file.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or [`io::ErrorKind::NotFound`] if the path leads to another file.
    pub(crate) fn reopen(&mut self, path: &Path) -> io::Result<()> {
        // The name may be that of a FIFO by now: do not wait for its reader.
        let mut options = OpenOptions::new();
        let new = Self::new(non_blocking(options.write(true)).open(path)?)?;
        if new.identity != self.identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Do not drop the old one: its number was free, and may be the new one's, which its destructor would close.
        mem::forget(mem::replace(self, new));
        Ok(())
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_intact() {
            // SAFETY: the file is not used afterwards, since `self` is being dropped.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Makes opening a FIFO not wait for its other end, and keeps a terminal from becoming the terminal of the process.
#[cfg(unix)]
pub fn non_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// Changes nothing: on other systems a path leads to no FIFO.
#[cfg(not(unix))]
pub fn non_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn identity(file: &File) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;

    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Returns nothing: on these systems a program does not close files by counting descriptors.
#[cfg(not(unix))]
fn identity(_file: &File) -> io::Result<Identity> {
    Ok(())
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::path::PathBuf;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("profiler-own-file-{}-{name}", std::process::id()))
    }

    fn created(path: &Path) -> OwnFile {
        OwnFile::new(File::create(path).expect("a new file")).expect("it has metadata")
    }

    /// Makes the descriptor refer to another file, as a program does that closes it and opens that file.
    fn redirect(file: &OwnFile, other: &Path) {
        let other = File::create(other).expect("a new file").into_raw_fd();
        // SAFETY: both are open descriptors of this test.
        unsafe {
            assert!(libc::dup2(other, file.file.as_raw_fd()) >= 0);
            libc::close(other);
        }
    }

    #[test]
    fn a_descriptor_that_was_reused_is_neither_written_nor_closed() {
        let (own, other) = (path("own"), path("other"));
        let file = created(&own);
        assert!(file.is_intact());
        redirect(&file, &other);
        assert!(!file.is_intact() && file.get().is_err());
        let descriptor = file.file.as_raw_fd();
        drop(file);
        // SAFETY: reads the flags of a descriptor, and closes it, which nothing else does.
        unsafe {
            assert!(libc::fcntl(descriptor, libc::F_GETFD) >= 0, "still open");
            libc::close(descriptor);
        }
        assert_eq!(fs::read(&other).expect("it is there"), b"");
        let _ = (fs::remove_file(own), fs::remove_file(other));
    }

    #[test]
    fn a_file_is_reopened_by_its_path_unless_another_one_has_it() {
        let (own, other) = (path("again"), path("another"));
        let mut file = created(&own);
        redirect(&file, &other);
        // Kept open by hand: `reopen` must leave the reused descriptor alone.
        let reused = file.file.as_raw_fd();
        file.reopen(&own).expect("it is the same file");
        file.get()
            .expect("it is open")
            .write_all(b"more")
            .expect("it is written");
        assert_eq!(fs::read(&own).expect("it is there"), b"more");
        fs::rename(&other, &own).expect("it is replaced");
        let error = file.reopen(&own).expect_err("it is another file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        // SAFETY: closes a descriptor that nothing else closes.
        unsafe { libc::close(reused) };
        let _ = fs::remove_file(own);
    }
}
