//! The file that a running program rewrites.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use profiler_host::process::output::non_blocking;
use profiler_report::Summary;

use crate::input::{Input, InputError, Limits};

/// The outcome of a look at the file.
#[derive(Debug)]
pub(super) enum Look {
    /// It is as it was.
    Same,
    /// It is not there; the file of a rank may be, which the launcher's rank gave another name.
    Missing { beside: Option<String> },
    /// It cannot be read, with the reason in one line.
    Broken(String),
    /// It was written.
    New {
        summary: Box<Summary>,
        written: SystemTime,
    },
}

/// A file, and which of its contents was read last.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    limits: Limits,
    /// When it was written and its length, as of the last look.
    seen: Option<(SystemTime, u64)>,
}

impl File {
    pub(super) const fn new(path: PathBuf, limits: Limits) -> Self {
        Self {
            path,
            limits,
            seen: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file if it has changed.
    pub(super) fn look(&mut self) -> Look {
        let stamp =
            std::fs::metadata(&self.path).and_then(|file| Ok((file.modified()?, file.len())));
        let stamp = match stamp {
            Ok(stamp) => stamp,
            Err(error) => {
                self.seen = None;
                return match error.kind() {
                    io::ErrorKind::NotFound => Look::Missing {
                        beside: self.beside(),
                    },
                    _ => Look::Broken(format!("cannot be read: {error}")),
                };
            }
        };
        if self.seen == Some(stamp) {
            return Look::Same;
        }
        self.seen = Some(stamp);
        match self.read() {
            Ok(summary) => Look::New {
                summary: Box::new(summary),
                written: stamp.0,
            },
            // It was removed after the look.
            Err(Unreadable::Input(InputError::Io(error)))
                if error.kind() == io::ErrorKind::NotFound =>
            {
                self.seen = None;
                Look::Missing { beside: None }
            }
            Err(error) => Look::Broken(error.to_string()),
        }
    }

    /// Returns the first file of a rank beside the path: `live_rank0.json` for `live.json`.
    fn beside(&self) -> Option<String> {
        let stem = self.path.file_stem()?.to_str()?;
        let folder = self.path.parent().filter(|folder| *folder != Path::new(""));
        let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_of_rank = |name: &String| {
            let rest = name.strip_prefix(stem);
            let is_rank = rest.is_some_and(|rest| rest.starts_with("_rank"));
            is_rank && Path::new(name).extension() == self.path.extension()
        };
        names.filter(is_of_rank).min()
    }

    fn read(&self) -> Result<Summary, Unreadable> {
        // Opening a FIFO would wait for its other end, and the keys with it.
        let mut options = std::fs::File::options();
        let file = non_blocking(options.read(true)).open(&self.path);
        let file = file.map_err(InputError::Io)?;
        if !file.metadata().map_err(InputError::Io)?.is_file() {
            return Err(Unreadable::NotRegular);
        }
        match Input::from_reader(file, "", self.limits)? {
            Input::Summary(summary) => Ok(*summary),
            _ => Err(Unreadable::Trace),
        }
    }
}

/// Why there is no summary to show. The message continues the name of the file.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("{0}")]
    Input(#[from] InputError),
    #[error(
        "is a pipe, a folder or a device, and not read: give the file that PROFILER_SUMMARY names"
    )]
    NotRegular,
    #[error("is a trace, and no summary: give the file that PROFILER_SUMMARY names")]
    Trace,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_when_it_appears_and_when_it_changes() {
        let name = format!("profiler-top-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        let mut file = File::new(path.clone(), Limits::DEFAULT);
        assert!(matches!(file.look(), Look::Missing { beside: None }));
        let mut summary = Summary::default();
        for wall_ns in [1e9, 22e9] {
            summary.wall_ns = wall_ns;
            fs::write(&path, summary.to_json()).expect("it is written");
            let Look::New { summary: read, .. } = file.look() else {
                panic!("it is new");
            };
            assert_eq!(read.wall_ns.to_bits(), wall_ns.to_bits());
            assert!(matches!(file.look(), Look::Same));
        }
        fs::write(&path, "{\"schema_version\": 1, ").expect("it is written");
        assert!(matches!(file.look(), Look::Broken(_)));
        fs::remove_file(&path).expect("it is there");
        assert!(matches!(file.look(), Look::Missing { beside: None }));
        let mut folder = File::new(std::env::temp_dir(), Limits::DEFAULT);
        assert!(matches!(folder.look(), Look::Broken(_)));
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_not_waited_for() {
        let name = format!("profiler-top-fifo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo is there").success());
        let look = File::new(path.clone(), Limits::DEFAULT).look();
        fs::remove_file(&path).expect("it is there");
        assert!(matches!(look, Look::Broken(reason) if reason.starts_with("is a pipe")));
    }

    #[test]
    fn the_file_of_a_rank_beside_a_missing_one_is_found() {
        let name = format!("profiler-top-beside-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a new folder");
        let mut file = File::new(folder.join("live.json"), Limits::DEFAULT);
        let mut beside = || match file.look() {
            Look::Missing { beside } => beside,
            other => panic!("it is not there: {other:?}"),
        };
        for other in ["live_rank.txt", "other_rank0.json", "live.txt"] {
            fs::write(folder.join(other), "").expect("it is written");
        }
        assert_eq!(beside(), None);
        for rank in [1, 0] {
            fs::write(folder.join(format!("live_rank{rank}.json")), "").expect("it is written");
        }
        assert_eq!(beside().as_deref(), Some("live_rank0.json"));
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
