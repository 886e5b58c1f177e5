//! The program, how it ended, and folders for its files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How the program ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Self {
            code: output.status.code().expect("no signal ended the program"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Returns the program with arguments; it does not see the terminal's width.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profiler"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("COLUMNS");
    command
}

/// Runs the program to its end.
pub(crate) fn profiler(arguments: &[&str]) -> Run {
    command(arguments)
        .output()
        .expect("the program starts")
        .into()
}

/// An empty folder, removed at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("folder-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a new folder");
        Self(path)
    }

    /// Returns the path of a file of that name, which need not exist.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("the path is UTF-8").to_owned()
    }

    /// Creates a folder in it.
    pub(crate) fn folder(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).expect("a new folder");
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the file is written");
        path
    }

    /// Returns the names of the files, in alphabetical order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
