//! The values of variables that are neither numbers nor paths.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use super::similar::{did_you_mean, distance};

/// Where the summary is written at the end of the program.
///
/// # Examples
///
/// ```
/// use profiler_runtime::SummaryTarget;
///
/// assert_eq!(SummaryTarget::parse("stderr"), SummaryTarget::Stderr);
/// assert_eq!(SummaryTarget::parse("out.json"), SummaryTarget::File("out.json".into()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryTarget {
    /// Nowhere.
    #[default]
    Off,
    /// To standard error.
    Stderr,
    /// To standard output.
    Stdout,
    /// To a file: as JSON or CSV if its name ends in `.json` or `.csv`, otherwise as a table.
    File(PathBuf),
}

/// Makes a path absolute: the program may change its working directory before the path is used.
pub(super) fn absolute(path: &OsStr) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
}

/// The endings that name a format of the summary; `.txt` and `.log` name the table.
const SUMMARY_ENDINGS: [&str; 4] = ["json", "csv", "txt", "log"];

/// Returns a warning for a file whose name is like one of the streams.
fn misspelled_target(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let near = ["stderr", "stdout"]
        .into_iter()
        .find(|known| (1..=2).contains(&distance(known, &name)))?;
    Some(format!(
        "the summary goes to the file {}{}",
        path.display(),
        did_you_mean(&[near])
    ))
}

impl fmt::Display for SummaryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.pad("nowhere"),
            Self::Stderr => f.pad("standard error"),
            Self::Stdout => f.pad("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl SummaryTarget {
    /// Reads a target that may be the path of a file, which need not be text.
    pub(super) fn from_os(value: &OsStr) -> Self {
        let target = value
            .to_str()
            .map_or_else(|| Self::File(value.into()), Self::parse);
        match target {
            Self::File(path) => Self::File(absolute(path.as_os_str())),
            other => other,
        }
    }

    /// Returns a warning if the name of the file is likely a mistake: a misspelled keyword, or an ending that asks for a
    /// format which does not exist. The file is written all the same.
    pub(crate) fn objection(&self) -> Option<String> {
        let Self::File(path) = self else {
            return None;
        };
        let Some(ending) = path.extension() else {
            return misspelled_target(path);
        };
        let mut known = SUMMARY_ENDINGS.iter();
        let is_known = known.any(|known| ending.eq_ignore_ascii_case(known));
        (!is_known).then(|| {
            format!(
                "`.{}` is not a known ending, so {} gets the table: end the name in `.json` or `.csv` for these formats, \
                 in `.txt`, `.log` or nothing for the table",
                ending.display(),
                path.display()
            )
        })
    }

    /// Parses a target as the variable `PROFILER_SUMMARY` spells it. Anything but a keyword is the path of a file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "off" | "0" | "no" | "false" | "none" => Self::Off,
            "stderr" | "on" | "1" | "yes" | "true" => Self::Stderr,
            "stdout" => Self::Stdout,
            _ => Self::File(text.into()),
        }
    }
}

/// The times that are measured.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Backend, builder};
///
/// let _profiler = builder().backend(Backend::Cpu).init()?;
/// # Ok::<(), profiler_runtime::InitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// CPU times, and GPU times if the program uses CUDA.
    #[default]
    Auto,
    /// CPU and GPU times. Without a device [`init`](crate::startup::init) returns an error, and a program that does not
    /// call it gets a warning.
    Cuda,
    /// CPU times only.
    Cpu,
}

impl Backend {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Some(Self::Auto),
            "cuda" => Some(Self::Cuda),
            "cpu" => Some(Self::Cpu),
            _ => None,
        }
    }
}

/// The default stream of the driver that is used if no stream is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ImplicitStream {
    #[default]
    None,
    Legacy,
    PerThread,
}

impl ImplicitStream {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Some(Self::None),
            "legacy" => Some(Self::Legacy),
            "per-thread" => Some(Self::PerThread),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_keywords_or_files() {
        for (text, target) in [
            ("", SummaryTarget::Off),
            (" OFF ", SummaryTarget::Off),
            ("1", SummaryTarget::Stderr),
            ("stderr", SummaryTarget::Stderr),
            ("Stdout", SummaryTarget::Stdout),
            ("out.csv", SummaryTarget::File("out.csv".into())),
        ] {
            assert_eq!(SummaryTarget::parse(text), target, "{text}");
        }
        let SummaryTarget::File(path) = SummaryTarget::from_os(OsStr::new("out.csv")) else {
            panic!("it is a file");
        };
        assert!(path.is_absolute() && path.ends_with("out.csv"));
    }

    #[test]
    fn the_name_of_a_file_may_be_a_mistake() {
        let objection = |text: &str| SummaryTarget::parse(text).objection();
        for text in [
            "stderr",
            "off",
            "out",
            "out.json",
            "out.CSV",
            "out.txt",
            "run.log",
            "/dev/fd/3",
        ] {
            assert_eq!(objection(text), None, "{text}");
        }
        let misspelled = "the summary goes to the file sterr; did you mean `stderr`?";
        assert_eq!(objection("sterr").as_deref(), Some(misspelled));
        let unknown = objection("out.jsn").expect("no format");
        assert!(
            unknown.starts_with("`.jsn` is not a known ending, so out.jsn gets the table:"),
            "{unknown}"
        );
    }
}
