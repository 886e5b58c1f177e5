//! Who owns a file, who can write to a folder, and which permissions follow.

use std::fs::{File, Metadata};
use std::io;

/// The permissions that a new file may have at most; the mask of the process and the folder restrict them.
const NEW: u32 = 0o666;
/// The permissions of a file of this user alone.
const OWN: u32 = 0o600;
const ROOT: u32 = 0;

/// What decides who can do what with a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    owner: u32,
    mode: u32,
}

impl Rights {
    #[cfg(unix)]
    pub(super) fn of(about: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self {
            owner: about.uid(),
            mode: about.mode(),
        }
    }

    /// Returns the rights of a file of this user, since other systems have neither owners nor modes.
    #[cfg(not(unix))]
    pub(super) fn of(_about: &Metadata) -> Self {
        Self {
            owner: user(),
            mode: OWN,
        }
    }

    /// Returns `true` if another user may have put this file or link into a folder, to have it written to: its owner is neither
    /// `user` nor root, and others can write to the folder.
    ///
    /// Where only one other user can write, as to the folder of a host that a container has, files of that user may be
    /// replaced: that user can replace them too. A link may lead out of the folder all the same.
    fn is_of_another(self, folder: Self, is_file: bool, user: u32) -> bool {
        let is_foreign = |rights: Self| ![user, ROOT].contains(&rights.owner);
        let others_can_write = folder.mode & 0o022 != 0;
        let is_of_owner = is_file && self.owner == folder.owner && !others_can_write;
        is_foreign(self) && (is_foreign(folder) || others_can_write) && !is_of_owner
    }

    /// Returns the permissions with which a file is created that replaces this one. At no time can more users read the new file
    /// than in the end. Until [`keep`] has set its permissions, only this user can, if the replaced file is this user's; a file of
    /// another user limits the permissions of the new one.
    fn of_replacement(self, user: u32) -> u32 {
        if self.owner == user {
            OWN
        } else {
            OWN | self.mode & NEW
        }
    }
}

#[cfg(unix)]
fn user() -> u32 {
    // SAFETY: the call takes nothing and always succeeds.
    unsafe { libc::geteuid() }
}

#[cfg(not(unix))]
fn user() -> u32 {
    ROOT
}

/// Returns `true` if another user may have put something into a folder to have it written to.
pub(super) fn is_of_another(folder: &Metadata, about: &Metadata) -> bool {
    Rights::of(about).is_of_another(Rights::of(folder), about.is_file(), user())
}

/// Returns `true` for a file or a folder of this user.
pub(super) fn is_own(about: &Metadata) -> bool {
    Rights::of(about).owner == user()
}

/// Returns the permissions of a new file that may replace another one; the mask of the process restricts them.
pub(super) fn at_creation(before: Option<&Metadata>) -> u32 {
    before.map_or(NEW, |before| Rights::of(before).of_replacement(user()))
}

/// Gives a new file the permissions of the file that it replaces, if that is this user's: without the set-user-ID,
/// set-group-ID and sticky bits, which were granted to another file. If it is another user's, the new file loses those that it
/// lacks.
#[cfg(unix)]
pub(super) fn keep(before: Option<&Metadata>, file: &File) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    let Some(before) = before.map(Rights::of) else {
        return Ok(());
    };
    let mode = if before.owner == user() {
        before.mode & 0o777
    } else {
        Rights::of(&file.metadata()?).mode & before.of_replacement(user())
    };
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a new file the permissions of the file that it replaces.
#[cfg(not(unix))]
pub(super) fn keep(before: Option<&Metadata>, file: &File) -> io::Result<()> {
    before.map_or(Ok(()), |before| file.set_permissions(before.permissions()))
}

/// Returns `true` if a file can be run.
pub(super) fn is_executable(about: &Metadata) -> bool {
    Rights::of(about).mode & 0o111 != 0
}

/// Returns `true` for a FIFO.
#[cfg(unix)]
pub(super) fn is_fifo(about: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;

    about.file_type().is_fifo()
}

/// Returns `false`: on other systems a path leads to no FIFO.
#[cfg(not(unix))]
pub(super) fn is_fifo(_about: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1000;
    const OTHER: u32 = 2000;

    fn rights(owner: u32, mode: u32) -> Rights {
        Rights { owner, mode }
    }

    #[test]
    fn what_another_user_may_have_put_into_a_folder_is_not_written_to() {
        let sticky = rights(ROOT, 0o1777);
        let of_group = rights(USER, 0o775);
        let own = rights(USER, 0o755);
        let of_host = rights(OTHER, 0o755);
        for (folder, owner, is_file, is_of_another) in [
            (sticky, USER, false, false),
            (sticky, ROOT, false, false),
            (sticky, OTHER, false, true),
            (sticky, OTHER, true, true),
            (of_group, OTHER, true, true),
            (own, OTHER, false, false),
            (of_host, OTHER, true, false),
            (of_host, OTHER, false, true),
            (of_host, 3000, true, true),
            (rights(OTHER, 0o777), OTHER, true, true),
        ] {
            let entry = rights(owner, 0o666);
            let found = entry.is_of_another(folder, is_file, USER);
            assert_eq!(found, is_of_another, "{owner} in {folder:?}");
        }
    }

    #[test]
    fn a_file_that_replaces_another_users_has_no_permission_that_it_lacks() {
        assert_eq!(rights(USER, 0o666).of_replacement(USER), 0o600);
        assert_eq!(rights(OTHER, 0o777).of_replacement(USER), 0o666);
        assert_eq!(rights(OTHER, 0o640).of_replacement(USER), 0o640);
        assert_eq!(rights(OTHER, 0o000).of_replacement(USER), 0o600);
    }
}
