//! The values of variables that are neither numbers nor paths.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use profiler_host::diagnostics::{did_you_mean, edit_distance};
use profiler_report::SummaryFileError;
use profiler_report::internal::SummaryFormat;

use super::paths::absolute;
use super::reader::parse_bool;

/// The memory that all cells of the statistics may take by default: that of some 800,000 cells.
pub(crate) const DEFAULT_CELL_MEMORY: usize = 512 << 20;

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
    /// To a file, in the format that the ending of its name selects: `.json`, `.csv`, `.prom`
    /// (Prometheus), with the feature `export` `.html` (a page), `.prof` (pstats, SnakeViz), `.pb.gz` (pprof)
    /// and `.folded` (flame graphs), or `.txt`, `.log` and nothing for the table.
    ///
    /// The page and the formats of viewers show what called what, so callers are counted for them, unless
    /// [`Builder::callers`](crate::Builder::callers) or `PROFILER_CALLERS` says no. Other endings are refused; the table
    /// then goes to standard error.
    File(PathBuf),
}

/// Returns a warning for a file whose name is like one of the streams.
fn misspelled_target(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let near = ["stderr", "stdout"]
        .into_iter()
        .find(|known| (1..=2).contains(&edit_distance(known, &name)))?;
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

    /// Returns a warning if the name of the file is likely a misspelled keyword. The file is written all the same.
    pub(crate) fn objection(&self) -> Option<String> {
        match self {
            Self::File(path) if path.extension().is_none() => misspelled_target(path),
            _ => None,
        }
    }

    /// Returns `true` if the format of the file shows what called what.
    pub(crate) fn shows_callers(&self) -> bool {
        let Self::File(path) = self else {
            return false;
        };
        SummaryFormat::of(path).is_ok_and(SummaryFormat::shows_callers)
    }

    /// Replaces a file that no format can be written to by standard error.
    ///
    /// # Errors
    ///
    /// Returns the error of [`SummaryFormat::of`] beside standard error.
    pub(crate) fn or_stderr(self) -> (Self, Option<SummaryFileError>) {
        let refused = match &self {
            Self::File(path) => SummaryFormat::of(path).err(),
            _ => None,
        };
        let target = if refused.is_some() {
            Self::Stderr
        } else {
            self
        };
        (target, refused)
    }

    /// Returns `true` if the format of the file shows how the calls are distributed over the run.
    pub(crate) fn has_history(&self) -> bool {
        let Self::File(path) = self else {
            return false;
        };
        SummaryFormat::of(path).is_ok_and(SummaryFormat::has_history)
    }

    /// Parses a target as the variable `PROFILER_SUMMARY` spells it. Anything but a keyword is the path of a file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "off" | "0" | "no" | "false" | "none" => Self::Off,
            "stderr" | "on" | "1" | "yes" | "true" => Self::Stderr,
            "stdout" | "-" => Self::Stdout,
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

/// The stream that is used if no stream is named: a default stream of the driver, or what libtorch launches on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ImplicitStream {
    #[default]
    None,
    Legacy,
    PerThread,
    /// The current stream of libtorch, unless that is the legacy default stream.
    Libtorch,
    LibtorchOrLegacy,
}

impl ImplicitStream {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Some(Self::None),
            "legacy" => Some(Self::Legacy),
            "per-thread" => Some(Self::PerThread),
            "libtorch" => Some(Self::Libtorch),
            "libtorch-or-legacy" => Some(Self::LibtorchOrLegacy),
            _ => None,
        }
    }
}

/// If sessions record kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KernelRecording {
    /// If CUPTI is found and no other tool uses it.
    #[default]
    IfPossible,
    /// No.
    Off,
    /// Yes, and a warning says why not if that is not possible.
    Required,
}

impl KernelRecording {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Some(Self::IfPossible),
            text => parse_bool(text).map(Self::from),
        }
    }
}

impl From<bool> for KernelRecording {
    fn from(on: bool) -> Self {
        if on { Self::Required } else { Self::Off }
    }
}

/// If calls are ranges in an NVTX tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nvtx {
    /// If there is a tool.
    #[default]
    Auto,
    /// A missing tool is reported.
    On,
    Off,
}

impl Nvtx {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.trim().eq_ignore_ascii_case("auto") {
            return Some(Self::Auto);
        }
        parse_bool(text).map(|on| if on { Self::On } else { Self::Off })
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
            ("-", SummaryTarget::Stdout),
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
    fn some_formats_have_a_history() {
        for (text, has_history) in [
            ("out.json", true),
            ("a/run.HTML", cfg!(feature = "export")),
            ("out.prof", false),
            ("out.csv", false),
            ("stderr", false),
        ] {
            let target = SummaryTarget::parse(text);
            assert_eq!(target.has_history(), has_history, "{text}");
        }
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
    }

    #[test]
    fn a_file_without_a_format_is_replaced_by_standard_error() {
        let (target, refused) = SummaryTarget::parse("out.jsn").or_stderr();
        assert_eq!(target, SummaryTarget::Stderr);
        assert!(refused.is_some());
        for text in ["out.json", "stdout", "off"] {
            let target = SummaryTarget::parse(text);
            assert_eq!(target.clone().or_stderr(), (target, None));
        }
    }
}
