//! Files that appear whole or not at all, whatever ends the program.
//!
//! The runtime's writers give a file its name when it is complete, but remove what they have written only if they fail. A
//! signal would leave that behind. They therefore write into a folder beside the file, which is removed in any case.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use profiler_host::process::output::{FolderBeside, Place};
use profiler_report::internal::InOrder as _;

use crate::error::Error;
use crate::output::complain;

/// The folder that a signal removes.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

fn folder() -> MutexGuard<'static, Option<PathBuf>> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `true` if two paths lead to one file.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Returns the error of an output that is an input, too.
pub(crate) fn replaces_input(output: &Path) -> Error {
    Error::Usage(format!(
        "{}: the output would replace an input: give another name with -o",
        output.display()
    ))
}

/// The outputs of a command while they are written.
pub(crate) struct Staging<'i> {
    /// The file as the user named it.
    named: PathBuf,
    /// The file in the folder, or the target if that is no regular file and cannot be replaced.
    path: PathBuf,
    folder: Option<(FolderBeside, PathBuf)>,
    /// Where the file goes, which a link leads to.
    place: Option<Place>,
    /// The files that the command reads, and never replaces.
    inputs: &'i [PathBuf],
}

impl<'i> Staging<'i> {
    /// Prepares to write a file, which the command must not read. One is written at a time.
    pub(crate) fn new(target: &Path, inputs: &'i [PathBuf]) -> Result<Self, Error> {
        let failed = |error| Error::write(target, error);
        let Some(name) = target.file_name() else {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no name of a file",
            )));
        };
        let mut staging = Self {
            named: target.to_owned(),
            path: target.to_owned(),
            folder: None,
            place: None,
            inputs,
        };
        let Some(place) = staging.place_of(target)? else {
            return Ok(staging);
        };
        interrupts::watch();
        let mut current = folder();
        let (beside, path) = new_folder_beside(&place).map_err(failed)?;
        *current = Some(path.clone());
        drop(current);
        staging.path = beside.path_of(name);
        staging.folder = Some((beside, path));
        staging.place = Some(place);
        Ok(staging)
    }

    /// Returns the path to write to. Its name is that of the target.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if further files can be written beside the target.
    pub(crate) fn has_room_beside(&self) -> bool {
        self.folder.is_some()
    }

    /// Gives everything that was written its name, beside the target, and says it. Replaces files of these names.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let (Some((beside, path)), Some(place)) = (&self.folder, self.place.take()) else {
            return Ok(());
        };
        let failed = |error| Error::write(&self.named, error);
        // Signals wait meanwhile.
        let _current = folder();
        let mut others = Vec::new();
        let own = self.path.file_name().unwrap_or_default();
        for entry in fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name == own {
                continue;
            }
            let named = place.path().with_file_name(&name);
            // Nothing is replaced before all outputs have been looked at.
            let place = self.place_of(&named)?;
            others.push((name, named, place));
        }
        let mut written = vec![self.named.clone()];
        place.take(beside, own).map_err(failed)?;
        for (name, named, place) in others {
            let failed = |error| Error::write(&named, error);
            let Some(place) = place else {
                return Err(failed(io::ErrorKind::AlreadyExists.into()));
            };
            place.take(beside, &name).map_err(failed)?;
            written.push(named);
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

    /// Returns where an output goes, or `None` if it is no regular file and is written to in place.
    fn place_of(&self, output: &Path) -> Result<Option<Place>, Error> {
        if self.inputs.iter().any(|input| same_file(input, output)) {
            return Err(replaces_input(output));
        }
        let place = Place::of(output).map_err(|error| {
            if error.raw_os_error().is_some() {
                return Error::write(output, error);
            }
            Error::Refused {
                path: output.to_owned(),
                reason: format!("{error}: give another name, or one in a folder of your own"),
            }
        })?;
        if place.as_ref().is_some_and(Place::is_folder) {
            return Err(Error::write(output, io::ErrorKind::IsADirectory.into()));
        }
        Ok(place.filter(Place::is_replaced))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if let Some((_, path)) = self.folder.take() {
            let mut current = folder();
            let _ = fs::remove_dir_all(path);
            *current = None;
        }
    }
}

/// Creates a hidden folder. One that was left behind has the number of a process that may run in another container.
fn new_folder_beside(place: &Place) -> io::Result<(FolderBeside, PathBuf)> {
    const ATTEMPTS: u32 = 1_000;
    let process = std::process::id();
    let mut attempt = 0;
    loop {
        let name = format!(".profiler-{process}-{attempt}");
        match place.create_folder_beside(name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                attempt += 1;
            }
            created => return created.map(|folder| (folder, place.path().with_file_name(name))),
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
