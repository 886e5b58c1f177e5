//! Runs a test again in a process of its own, for what cannot be undone in this one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIR: &str = "PROFILER_TESTS_CHILD_DIR";

/// The folder given to [`again`], in the process that it started.
pub(crate) fn dir() -> Option<PathBuf> {
    env::var_os(DIR).map(PathBuf::from)
}

/// A command that runs the test called `name` of this program, and no other, with a folder.
///
/// The signal that a file over its size limit raises is ignored, so that writing fails instead.
pub(crate) fn again(name: &str, dir: &Path) -> Command {
    let program = env::current_exe().expect("a test knows its program");
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"trap '' XFSZ; exec "$0" "$@""#])
        .arg(program)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIR, dir);
    command
}
