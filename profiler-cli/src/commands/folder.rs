//! Folders where files are expected: which of their files a command takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use profiler_host::diagnostics::{did_you_mean, similar};

use crate::error::Error;
use crate::input::{Beginning, InputError, Limits};
use crate::output::complain;

/// The files that a command can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Summaries and traces.
    Any,
    Summaries,
    Traces,
}

impl Wanted {
    fn includes(self, beginning: Beginning) -> bool {
        match beginning {
            Beginning::Summary => self != Self::Traces,
            Beginning::Trace => self != Self::Summaries,
            Beginning::Other => false,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Any => "summary or trace",
            Self::Summaries => "summary",
            Self::Traces => "trace",
        }
    }
}

/// Returns the file to read: the path, or if that is a folder, the newest file in it, which a line on standard error names.
pub(super) fn newest(path: &Path, wanted: Wanted) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let files = Files::of(path, wanted, None)?;
    let written = |file: &PathBuf| {
        let about = fs::metadata(file).and_then(|about| about.modified());
        about.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let newest = files.fitting.iter().max_by_key(|file| written(file));
    let newest = newest.ok_or_else(|| files.refusal())?;
    let which = match files.fitting.len() {
        1 => format!("the only {} in it", wanted.noun()),
        count => format!("the newest of {count} files"),
    };
    let folder = path.display();
    complain(&format_args!("{folder}: takes {}, {which}", name(newest)));
    Ok(newest.clone())
}

/// Returns the files to read: the paths, and all files of those that are folders, which a line on standard error counts.
/// Files of a folder that cannot be used are left out, and so is `output`, which an earlier command may have written.
pub(super) fn all(
    paths: &[PathBuf],
    wanted: Wanted,
    output: Option<&Path>,
) -> Result<Vec<PathBuf>, Error> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let files = Files::of(path, wanted, output)?;
            complain(&format_args!("{}: {}", path.display(), files.account()?));
            all.extend(files.fitting);
        } else {
            all.push(path.clone());
        }
    }
    Ok(all)
}

/// Returns all files of a folder that can be used, and says nothing.
pub(super) fn quietly(folder: &Path, wanted: Wanted) -> Result<Vec<PathBuf>, Error> {
    let files = Files::of(folder, wanted, None)?;
    files.account()?;
    Ok(files.fitting)
}

/// Says what to give instead of a file that is not there: one beside it with a similar name.
pub(super) fn instead_of(path: &Path) -> String {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let beside = entries(parent.unwrap_or(Path::new("."))).unwrap_or_default();
    let names: Vec<String> = beside.iter().map(|path| name(path)).collect();
    match &similar(&name(path), names.iter().map(String::as_str))[..] {
        [] => "; give a file that PROFILER_SUMMARY=FILE.json or PROFILER_TRACE wrote".to_owned(),
        names => did_you_mean(names),
    }
}

/// So many files that are taken are named one by one.
const NAMED: usize = 4;

/// The files of a folder whose names end in `.json` or `.json.gz`, by name.
struct Files<'f> {
    folder: &'f Path,
    wanted: Wanted,
    fitting: Vec<PathBuf>,
    left_out: Vec<String>,
}

impl<'f> Files<'f> {
    fn of(folder: &'f Path, wanted: Wanted, output: Option<&Path>) -> Result<Self, Error> {
        let mut files = Self {
            folder,
            wanted,
            fitting: Vec::new(),
            left_out: Vec::new(),
        };
        let output = output.and_then(|output| output.canonicalize().ok());
        for path in entries(folder)? {
            let is_output = output.is_some() && path.canonicalize().ok() == output;
            if is_json(&path) && path.is_file() && !is_output {
                // One that cannot be opened is no reason to go on without it.
                let beginning = Beginning::of(&path, Limits::DEFAULT.max_bytes);
                if beginning.is_ok_and(|beginning| !wanted.includes(beginning)) {
                    files.left_out.push(name(&path));
                } else {
                    files.fitting.push(path);
                }
            }
        }
        Ok(files)
    }

    /// Says which files are taken, unless there are none.
    fn account(&self) -> Result<String, Error> {
        let (Some(first), Some(last)) = (self.fitting.first(), self.fitting.last()) else {
            return Err(self.refusal());
        };
        let taken = match self.fitting.len() {
            1 => format!("takes {}", name(first)),
            count if count <= NAMED => {
                let names: Vec<String> = self.fitting.iter().map(|path| name(path)).collect();
                format!("takes all {count} files: {}", names.join(", "))
            }
            count => format!("takes all {count} files, {} to {}", name(first), name(last)),
        };
        Ok(match self.left_out.len() {
            0 => taken,
            _ => format!("{taken}; leaves out {}", listed(&self.left_out)),
        })
    }

    /// Says why there is no file to take, and where there may be one.
    fn refusal(&self) -> Error {
        let noun = self.wanted.noun();
        let reason = match self.left_out.len() {
            0 => "is a folder without files ending in .json or .json.gz".to_owned(),
            _ => format!(
                "is a folder without a {noun}: it has {}",
                listed(&self.left_out)
            ),
        };
        let mut folders = entries(self.folder).unwrap_or_default();
        folders.retain(|path| {
            let files = path.is_dir().then(|| Files::of(path, self.wanted, None));
            matches!(files, Some(Ok(files)) if !files.fitting.is_empty())
        });
        let folders: Vec<String> = folders.iter().map(|path| name(path)).collect();
        let hint = match folders.len() {
            0 => format!("; give a {noun}, or the folder that has one"),
            _ => format!("; give a folder inside it: {}", listed(&folders)),
        };
        Error::Refused {
            path: self.folder.to_owned(),
            reason: reason + &hint,
        }
    }
}

/// Returns what is in a folder, so that `9.json` comes before `10.json`.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::input(folder, InputError::Io(error));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    let number = |name: &str| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        name[..digits].parse::<u64>().unwrap_or(u64::MAX)
    };
    paths.sort_by_cached_key(|path| {
        let name = name(path);
        (number(&name), name)
    });
    Ok(paths)
}

fn is_json(path: &Path) -> bool {
    let name = name(path).to_ascii_lowercase();
    [".json", ".json.gz"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Lists the first names.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 3;
    match names.len() {
        count if count > SHOWN => {
            let shown = names[..SHOWN].join(", ");
            format!("{shown} and {} more", count - SHOWN)
        }
        _ => names.join(", "),
    }
}
