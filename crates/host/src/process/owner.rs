//! Whose a file is.

use std::fs::Metadata;

/// Returns `true` if a file belongs to the user or to root: nobody else chose what is in it.
#[cfg(unix)]
pub fn is_trusted(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: the function only reads the ids of the process, and cannot fail.
    is_owner_trusted(file.uid(), unsafe { libc::geteuid() })
}

/// Returns `true`: these systems have no owners, or none that a number names.
#[cfg(not(unix))]
pub fn is_trusted(_file: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn is_owner_trusted(owner: u32, user: u32) -> bool {
    owner == 0 || owner == user
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_user_and_of_root_are_trusted() {
        assert!(is_owner_trusted(0, 1000) && is_owner_trusted(1000, 1000));
        assert!(!is_owner_trusted(1001, 1000) && !is_owner_trusted(1001, 0));
        let path = std::env::temp_dir().join(format!("profiler-owner-{}", std::process::id()));
        let own = std::fs::File::create(&path).and_then(|file| file.metadata());
        std::fs::remove_file(&path).expect("it is there");
        assert!(is_trusted(&own.expect("a new file")));
    }
}
