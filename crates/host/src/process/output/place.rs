//! Where a path leads, and what may be done there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{Folder, Open};
use super::owners;

/// Folders of open descriptors. One may be a regular file, which is written to in place too.
const DESCRIPTOR_PATHS: [&str; 4] = ["/dev/fd", "/dev/stderr", "/dev/stdout", "/proc"];
/// The most links that are followed, as on Linux.
const MAX_LINKS: u32 = 40;

/// Returns `true` for the path of an open descriptor.
pub(super) fn is_descriptor(path: &Path) -> bool {
    DESCRIPTOR_PATHS.iter().any(|known| path.starts_with(known))
}

/// Where a path leads: a name in a folder, which is no link.
///
/// In a folder that others can write to, another user may have put a link, a FIFO or a file there, to choose what is replaced,
/// or to read what is written. These are refused.
#[derive(Debug)]
pub struct Place {
    folder: Folder,
    name: OsString,
    /// What has the name now.
    about: Option<Metadata>,
}

/// A folder beside a place, in which files are completed.
#[derive(Debug)]
pub struct FolderBeside(Folder);

impl FolderBeside {
    /// Returns the path of a file in the folder.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        self.0.path_of(name)
    }
}

/// A path leads to a place, or to an open descriptor.
#[derive(Debug)]
pub(super) enum Led {
    To(Box<Place>),
    Descriptor(PathBuf),
}

/// A file that would be replaced.
#[derive(Debug)]
pub struct Existing {
    /// The file, for reading.
    pub file: File,
    /// `true` if it can be run.
    pub is_executable: bool,
}

impl Place {
    /// Finds the place of a file, which need not exist. Returns `None` for an open descriptor, which has none.
    ///
    /// # Errors
    ///
    /// Returns the system's error, and [`io::ErrorKind::PermissionDenied`] if another user may have put there what has the
    /// name.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        Ok(match Led::by(path)? {
            Led::To(place) => Some(*place),
            Led::Descriptor(_) => None,
        })
    }

    /// Returns the path.
    pub fn path(&self) -> PathBuf {
        self.folder.path_of(&self.name)
    }

    /// Returns `true` if a regular file has the name, which is replaced, or if nothing has it yet.
    pub fn is_replaced(&self) -> bool {
        self.about.as_ref().is_none_or(Metadata::is_file)
    }

    /// Returns `true` if a folder has the name.
    pub fn is_folder(&self) -> bool {
        self.about.as_ref().is_some_and(Metadata::is_dir)
    }

    /// Opens the regular file that would be replaced, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it cannot be read.
    pub fn existing(&self) -> io::Result<Option<Existing>> {
        if !self.is_file() {
            return Ok(None);
        }
        let file = self.folder.open_file(&self.name, Open::Read)?;
        let is_executable = owners::is_executable(&file.metadata()?);
        Ok(Some(Existing {
            file,
            is_executable,
        }))
    }

    /// Creates a folder of this name beside the file, into which only this user can look: what is moved from there gets its
    /// permissions with its name.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it cannot be created.
    pub fn create_folder_beside(&self, name: &OsStr) -> io::Result<FolderBeside> {
        self.folder.create_folder(name).map(FolderBeside)
    }

    /// Moves a complete file here, with the permissions of the file that it replaces if that is this user's.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it cannot be moved, or if the file is not in the folder that was created.
    pub fn take(&self, folder: &FolderBeside, complete: &OsStr) -> io::Result<()> {
        let file = folder.0.open_file(complete, Open::Read)?;
        let about = file.metadata()?;
        if !about.is_file() || !owners::is_own(&about) {
            return Err(self.refused("file"));
        }
        // If that fails, as on file systems without permissions, no others get any.
        let _ = owners::keep(self.about.as_ref(), &file);
        self.folder.take(&folder.0, complete, &self.name)
    }

    /// Creates a file with another name in the folder, to be renamed to this place. Its permissions are at no time wider than
    /// those that it will have.
    pub(super) fn create_beside(&self, name: &OsString) -> io::Result<File> {
        let mode = owners::at_creation(self.about.as_ref());
        let file = self.folder.open_file(name, Open::New(mode))?;
        // If that fails, as on file systems without permissions, no others get any.
        let _ = owners::keep(self.about.as_ref(), &file);
        Ok(file)
    }

    /// Gives a file in the folder the name of this place.
    pub(super) fn rename_from(&self, name: &OsString) -> io::Result<()> {
        self.folder.rename(name, &self.name)
    }

    /// Removes a file in the folder.
    pub(super) fn remove_beside(&self, name: &OsString) -> io::Result<()> {
        self.folder.remove(name)
    }

    pub(super) fn name(&self) -> &OsString {
        &self.name
    }

    /// Returns `true` for a regular file.
    pub(super) fn is_file(&self) -> bool {
        self.about.as_ref().is_some_and(Metadata::is_file)
    }

    pub(super) fn is_fifo(&self) -> bool {
        self.about.as_ref().is_some_and(owners::is_fifo)
    }

    /// Opens what has the name, to be written in place.
    pub(super) fn open(&self, how: Open) -> io::Result<File> {
        let file = self.folder.open_file(&self.name, how)?;
        // Another one may have taken the name meanwhile.
        let about = file.metadata()?;
        if self.folder.has_from_another(&about) || matches!(how, Open::Whole) && !about.is_file() {
            return Err(self.refused("file"));
        }
        if matches!(how, Open::Whole) {
            file.set_len(0)?;
        }
        Ok(file)
    }

    fn refused(&self, kind: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the {kind} {} belongs to another user, in a folder that others can write to",
                self.path().display()
            ),
        )
    }
}

impl Led {
    /// Follows a path and its links.
    pub(super) fn by(path: &Path) -> io::Result<Self> {
        if is_descriptor(path) {
            return Ok(Self::Descriptor(path.to_owned()));
        }
        let (parent, name) = split(path)?;
        let mut folder = Folder::open(parent)?;
        let mut name = name.to_owned();
        for _ in 0..MAX_LINKS {
            let entry = folder.entry(&name)?;
            let is_of_another = entry
                .as_ref()
                .is_some_and(|entry| folder.has_from_another(&entry.about));
            let (about, link) = entry.map(|entry| (entry.about, entry.link)).unzip();
            let place = Place {
                folder,
                name,
                about,
            };
            if is_of_another {
                let kind = match &place.about {
                    Some(about) if about.is_symlink() => "link",
                    Some(about) if about.is_file() => "file",
                    Some(about) if about.is_dir() => "folder",
                    _ => "FIFO or device",
                };
                return Err(place.refused(kind));
            }
            let Some(link) = link.flatten() else {
                return Ok(Self::To(Box::new(place)));
            };
            if is_descriptor(&link) {
                return Ok(Self::Descriptor(link));
            }
            let (parent, next) = split(&link)?;
            folder = place.folder.follow(parent)?;
            name = next.into();
        }
        Err(io::Error::other("too many links lead to each other"))
    }
}

fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path does not end with the name of a file",
        )
    })?;
    Ok((path.parent().unwrap_or(Path::new("")), name))
}
