//! Files that appear whole or not at all, whatever ends the program.
//!
//! The runtime's writers give a file its name when it is complete, but remove what they have written only if they fail. A
//! signal would leave that behind. They therefore write into a folder beside the file, which is removed in any case.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use profiler_report::internal::InOrder as _;

use crate::error::Error;
use crate::output::complain;

/// The folder that a signal removes.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

fn folder() -> MutexGuard<'static, Option<PathBuf>> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a command while it is written.
pub(crate) struct Staging {
    /// The file as the user named it.
    named: PathBuf,
    /// The file to write, which a link leads to.
    target: PathBuf,
    /// The file in the folder, or the target if that is no regular file and cannot be replaced.
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Staging {
    /// Prepares to write a file. One is written at a time.
    pub(crate) fn new(target: &Path) -> Result<Self, Error> {
        let failed = |error| Error::write(target, error);
        let Some(name) = target.file_name() else {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no name of a file",
            )));
        };
        let about = fs::metadata(target).ok();
        if about.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if about.is_some_and(|about| !about.is_file()) {
            return Ok(Self {
                named: target.to_owned(),
                target: target.to_owned(),
                path: target.to_owned(),
                folder: None,
            });
        }
        // A link keeps leading to the file.
        let real = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        interrupts::watch();
        let mut current = folder();
        let beside = new_folder_beside(&real).map_err(failed)?;
        *current = Some(beside.clone());
        drop(current);
        Ok(Self {
            path: beside.join(name),
            named: target.to_owned(),
            target: real,
            folder: Some(beside),
        })
    }

    /// Returns the path to write to. Its name is that of the target.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives everything that was written its name, beside the target, and says it. Replaces files of these names.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Some(beside) = &self.folder else {
            return Ok(());
        };
        let failed = |error| Error::write(&self.target, error);
        let mut written = Vec::new();
        // Signals wait meanwhile.
        let _current = folder();
        for entry in fs::read_dir(beside).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let beside = self.target.with_file_name(entry.file_name());
            let (target, named) = if entry.path() == self.path {
                (&self.target, &self.named)
            } else {
                (&beside, &beside)
            };
            fs::rename(entry.path(), target).map_err(failed)?;
            written.push(named.clone());
        }
        // Standard output may lead to a file.
        let streams = ["/dev/stdout", "/dev/stderr", "/dev/fd"];
        if !streams.iter().any(|stream| self.named.starts_with(stream)) {
            written.order();
            for file in written {
                complain(&format_args!("wrote {}", file.display()));
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(beside) = self.folder.take() {
            let mut current = folder();
            let _ = fs::remove_dir_all(beside);
            *current = None;
        }
    }
}

/// Creates a hidden folder. One that was left behind has the number of a process that may run in another container.
fn new_folder_beside(file: &Path) -> io::Result<PathBuf> {
    const ATTEMPTS: u32 = 1_000;
    let process = std::process::id();
    let mut attempt = 0;
    loop {
        let beside = file.with_file_name(format!(".profiler-{process}-{attempt}"));
        match fs::create_dir(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            created => return created.map(|()| beside),
        }
    }
}

#[cfg(unix)]
mod interrupts {
    use std::fs;
    use std::sync::Once;
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Starts a thread that removes the folder when a signal asks the program to end, and then ends it as the signal would
    /// have. If that is not possible, signals end the program at once.
    pub(super) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
                return;
            };
            let wait = move || {
                for signal in signals.forever() {
                    let mut current = super::folder();
                    if let Some(beside) = current.take() {
                        let _ = fs::remove_dir_all(beside);
                    }
                    let _ = emulate_default_handler(signal);
                }
            };
            let _ = thread::Builder::new()
                .name("signals".to_owned())
                .spawn(wait);
        });
    }
}

#[cfg(not(unix))]
mod interrupts {
    /// Does nothing: here, Ctrl-C ends the program at once and leaves the hidden folder.
    pub(super) fn watch() {}
}
