//! A disk that is full, without one: a limit on the size of files.

use std::io;

use rlimit::{Resource, getrlimit, setrlimit};

use crate::child;

/// Makes every file of this process larger than `bytes` fail to be written, permanently or until the
/// next call.
pub fn limit_files(bytes: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::FSIZE)?;
    setrlimit(Resource::FSIZE, bytes.min(hard), hard)
}

/// Runs this process's test in another process, which gets a new folder from [`child::dir`]; the limit is for a process.
///
/// # Panics
///
/// When the test fails there, or does not run.
pub fn passes() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let output = child::again(dir.path()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    Ok(())
}
