//! A folder that files are created, renamed and removed in, opened once.
//!
//! On Linux each step goes through the descriptor of the folder, and what is asked of a file or a link is asked of that very
//! one: nobody can put another folder or another link in its place between two steps. Other systems lack descriptors that
//! stand for links, and take paths, whose last parts another user may replace meanwhile.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
use self::by_descriptor::Opened;
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
use self::by_path::Opened;
use super::owners;

/// How a file of a folder is opened. On Linux, none of them follows a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open {
    /// Creates a file that does not exist, with at most these permissions.
    New(u32),
    /// Opens what is no regular file, such as a FIFO, without waiting for its other end.
    InPlace,
    /// Opens a regular file to write all of it anew.
    Whole,
    /// Reads, without waiting for a writer.
    Read,
}

/// A folder.
#[derive(Debug)]
pub(super) struct Folder {
    opened: Opened,
    path: PathBuf,
    about: Metadata,
}

/// A file, a link or a folder in a folder.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) about: Metadata,
    /// Where a link leads.
    pub(super) link: Option<PathBuf>,
}

impl Folder {
    /// Opens a folder by its path.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let (opened, about) = Opened::open(path)?;
        Ok(Self {
            opened,
            path: path.to_owned(),
            about,
        })
    }

    /// Opens the folder that a link in this one leads to.
    pub(super) fn follow(&self, path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return self.follow(Path::new("."));
        }
        let (opened, about) = self.opened.follow(path)?;
        Ok(Self {
            opened,
            path: self.path.join(path),
            about,
        })
    }

    /// Returns the path of a file in the folder.
    pub(super) fn path_of(&self, name: &OsStr) -> PathBuf {
        if self.path == Path::new(".") {
            return name.into();
        }
        self.path.join(name)
    }

    /// Returns what has a name, or `None` if nothing has it.
    pub(super) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match self.opened.entry(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            entry => entry.map(Some),
        }
    }

    /// Returns `true` if another user may have put a file or a link into this folder to have it written to.
    pub(super) fn has_from_another(&self, about: &Metadata) -> bool {
        owners::is_of_another(&self.about, about)
    }

    /// Opens a file.
    pub(super) fn open_file(&self, name: &OsStr, how: Open) -> io::Result<File> {
        self.opened.open_file(name, how)
    }

    /// Renames a file to a name in the folder. Replaces what has that name, and follows no link.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.opened.rename(from, to)
    }

    /// Moves a file of another folder into this one, as [`rename`](Self::rename) does.
    pub(super) fn take(&self, folder: &Self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.opened.take(&folder.opened, from, to)
    }

    /// Creates a folder in this one, into which only this user can look, and opens it.
    pub(super) fn create_folder(&self, name: &OsStr) -> io::Result<Self> {
        let (opened, about) = self.opened.create_folder(name)?;
        if !owners::is_own(&about) {
            // Another user has put it in the place of the new one.
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Self {
            opened,
            path: self.path_of(name),
            about,
        })
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.opened.remove(name)
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
mod by_descriptor {
    use std::ffi::{CStr, CString, OsStr, OsString};
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, RawFd};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use libc::c_int;

    use super::super::own_file::OwnFile;
    use super::{Entry, Open};

    /// The longest path that a link may have.
    const MAX_LINK: usize = libc::PATH_MAX as usize;

    /// The descriptor of a folder, which needs no right to list it.
    #[derive(Debug)]
    pub(super) struct Opened(OwnFile);

    fn c_string(name: &OsStr) -> io::Result<CString> {
        CString::new(name.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    fn check(result: c_int) -> io::Result<()> {
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn open_at(folder: RawFd, name: &OsStr, flags: c_int, mode: u32) -> io::Result<File> {
        let name = c_string(name)?;
        loop {
            // SAFETY: the name is a C string that lives during the call.
            let file =
                unsafe { libc::openat(folder, name.as_ptr(), flags | libc::O_CLOEXEC, mode) };
            if file >= 0 {
                // SAFETY: the descriptor is new and has no other owner.
                return Ok(unsafe { File::from_raw_fd(file) });
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    impl Opened {
        pub(super) fn open(path: &Path) -> io::Result<(Self, Metadata)> {
            Self::at(libc::AT_FDCWD, path)
        }

        pub(super) fn follow(&self, path: &Path) -> io::Result<(Self, Metadata)> {
            Self::at(self.descriptor()?, path)
        }

        fn at(folder: RawFd, path: &Path) -> io::Result<(Self, Metadata)> {
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let file = open_at(folder, path.as_os_str(), flags, 0)?;
            let about = file.metadata()?;
            Ok((Self(OwnFile::new(file)?), about))
        }

        fn descriptor(&self) -> io::Result<RawFd> {
            Ok(self.0.get()?.as_raw_fd())
        }

        pub(super) fn entry(&self, name: &OsStr) -> io::Result<Entry> {
            let flags = libc::O_PATH | libc::O_NOFOLLOW;
            let file = open_at(self.descriptor()?, name, flags, 0)?;
            let about = file.metadata()?;
            let link = about.is_symlink().then(|| link_of(&file)).transpose()?;
            Ok(Entry { about, link })
        }

        pub(super) fn open_file(&self, name: &OsStr, how: Open) -> io::Result<File> {
            let (flags, mode) = match how {
                Open::New(mode) => (libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode),
                Open::InPlace => (
                    libc::O_WRONLY | libc::O_APPEND | libc::O_NONBLOCK | libc::O_NOCTTY,
                    0,
                ),
                Open::Whole => (libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0),
                Open::Read => (libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0),
            };
            open_at(self.descriptor()?, name, flags | libc::O_NOFOLLOW, mode)
        }

        pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            self.move_here(self.descriptor()?, from, to)
        }

        pub(super) fn take(&self, folder: &Self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            self.move_here(folder.descriptor()?, from, to)
        }

        pub(super) fn create_folder(&self, name: &OsStr) -> io::Result<(Self, Metadata)> {
            let (here, path) = (self.descriptor()?, c_string(name)?);
            // SAFETY: the name is a C string that lives during the call.
            check(unsafe { libc::mkdirat(here, path.as_ptr(), 0o700) })?;
            let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
            let file = open_at(here, name, flags, 0)?;
            let about = file.metadata()?;
            Ok((Self(OwnFile::new(file)?), about))
        }

        fn move_here(&self, folder: RawFd, from: &OsStr, to: &OsStr) -> io::Result<()> {
            let (from, to) = (c_string(from)?, c_string(to)?);
            let here = self.descriptor()?;
            // SAFETY: both names are C strings that live during the call.
            check(unsafe { libc::renameat(folder, from.as_ptr(), here, to.as_ptr()) })
        }

        pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
            let name = c_string(name)?;
            // SAFETY: the name is a C string that lives during the call.
            check(unsafe { libc::unlinkat(self.descriptor()?, name.as_ptr(), 0) })
        }
    }

    /// Returns where a link leads, by its own descriptor.
    fn link_of(link: &File) -> io::Result<PathBuf> {
        let mut bytes = vec![0_u8; MAX_LINK];
        let empty: &CStr = c"";
        // SAFETY: the empty name is a C string, and the buffer is valid for writes of its length.
        let length = unsafe {
            libc::readlinkat(
                link.as_raw_fd(),
                empty.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            )
        };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        bytes.truncate(length);
        Ok(OsString::from_vec(bytes).into())
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
mod by_path {
    use std::ffi::OsStr;
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::super::non_blocking;
    use super::{Entry, Open};

    /// The path of a folder.
    #[derive(Debug)]
    pub(super) struct Opened(PathBuf);

    impl Opened {
        pub(super) fn open(path: &Path) -> io::Result<(Self, Metadata)> {
            let about = fs::metadata(path)?;
            if !about.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok((Self(path.to_owned()), about))
        }

        pub(super) fn follow(&self, path: &Path) -> io::Result<(Self, Metadata)> {
            Self::open(&self.0.join(path))
        }

        pub(super) fn entry(&self, name: &OsStr) -> io::Result<Entry> {
            let path = self.0.join(name);
            let about = fs::symlink_metadata(&path)?;
            let link = about.is_symlink().then(|| fs::read_link(&path));
            Ok(Entry {
                about,
                link: link.transpose()?,
            })
        }

        pub(super) fn open_file(&self, name: &OsStr, how: Open) -> io::Result<File> {
            let mut options = OpenOptions::new();
            let options = match how {
                Open::New(mode) => with_mode(options.write(true).create_new(true), mode),
                Open::InPlace => non_blocking(options.append(true)),
                Open::Whole => non_blocking(options.write(true)),
                Open::Read => non_blocking(options.read(true)),
            };
            options.open(self.0.join(name))
        }

        pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            self.take(self, from, to)
        }

        pub(super) fn take(&self, folder: &Self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            fs::rename(folder.0.join(from), self.0.join(to))
        }

        pub(super) fn create_folder(&self, name: &OsStr) -> io::Result<(Self, Metadata)> {
            let path = self.0.join(name);
            private(&mut fs::DirBuilder::new()).create(&path)?;
            let about = fs::symlink_metadata(&path)?;
            Ok((Self(path), about))
        }

        pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }
    }

    #[cfg(unix)]
    fn private(builder: &mut fs::DirBuilder) -> &mut fs::DirBuilder {
        use std::os::unix::fs::DirBuilderExt;

        builder.mode(0o700)
    }

    #[cfg(not(unix))]
    fn private(builder: &mut fs::DirBuilder) -> &mut fs::DirBuilder {
        builder
    }

    #[cfg(unix)]
    fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
        use std::os::unix::fs::OpenOptionsExt;

        options.mode(mode)
    }

    #[cfg(not(unix))]
    fn with_mode(options: &mut OpenOptions, _mode: u32) -> &mut OpenOptions {
        options
    }
}
