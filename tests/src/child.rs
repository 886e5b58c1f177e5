//! Runs a test again in one more process, for what cannot be undone in this one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::isolated;

const DIR: &str = "PROFILER_TESTS_CHILD_DIR";

/// Returns the folder given to [`again`], in the process that it started.
#[must_use]
pub fn dir() -> Option<PathBuf> {
    env::var_os(DIR).map(PathBuf::from)
}

/// Returns a command that runs this process's test again, with a folder.
///
/// The signal that a file over its size limit raises is ignored, so that writing fails instead.
#[must_use]
pub fn again(dir: &Path) -> Command {
    let test = isolated::again();
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"trap '' XFSZ; exec "$0" "$@""#])
        .arg(test.get_program())
        .args(test.get_args())
        .env(isolated::AGAIN, "1")
        .env(DIR, dir);
    command
}
