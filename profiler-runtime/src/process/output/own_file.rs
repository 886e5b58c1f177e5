//! A file that stays open for long, in a process that may close any descriptor.
//!
//! A program that closes descriptors it did not open (as daemons do: all from 3 on) closes the profiler's with them, and
//! the next file it opens gets the number. What the profiler then wrote would go into the program's file.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{self, ManuallyDrop};
use std::path::Path;

/// Which file it is, whatever its name or number.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = ();

/// A file that is used only while its descriptor still is that file's.
#[derive(Debug)]
pub(crate) struct OwnFile {
    /// Closed by `drop`, unless it is somebody else's by then.
    file: ManuallyDrop<File>,
    identity: Identity,
}

impl OwnFile {
    /// # Errors
    ///
    /// Where the system does not tell what file it is.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let identity = identity(&file)?;
        Ok(Self {
            file: ManuallyDrop::new(file),
            identity,
        })
    }

    /// Returns whether the descriptor is still that of this file.
    ///
    /// Between this and the use of it another thread may still close it. That is a window of one system call; there is
    /// no call that compares and writes at once.
    pub(crate) fn is_intact(&self) -> bool {
        identity(&self.file).is_ok_and(|now| now == self.identity)
    }

    /// Returns the file, to be used at once.
    ///
    /// # Errors
    ///
    /// Where the program has closed the descriptor, or uses its number for something else.
    pub(crate) fn get(&self) -> io::Result<&File> {
        if self.is_intact() {
            Ok(&self.file)
        } else {
            Err(io::Error::other(
                "the program has closed the file's descriptor, which is not its own",
            ))
        }
    }

    /// Opens the file again by its path, where it is still the same file.
    ///
    /// # Errors
    ///
    /// The system's; [`io::ErrorKind::NotFound`] where the path leads to no file, or to another one.
    #[cfg_attr(
        not(feature = "tensorboard"),
        allow(dead_code, reason = "only a log stays open for long")
    )]
    pub(crate) fn reopen(&mut self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // A FIFO that has come under the name must not be waited for.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let new = Self::new(options.open(path)?)?;
        if new.identity != self.identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        // The old one must not be dropped: its number was free, and may be the new one's.
        mem::forget(mem::replace(self, new));
        Ok(())
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_intact() {
            // SAFETY: the file is not used after this, as the whole is being dropped.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(unix)]
fn identity(file: &File) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;

    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// A handle of these systems is not a number that a program closes by counting.
#[cfg(not(unix))]
fn identity(_file: &File) -> io::Result<Identity> {
    Ok(())
}
