//! What variables take that is neither a number nor a path.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

/// Where the summary goes at the end of the program.
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
    /// To a file: as JSON or CSV where its name ends so, else as a table.
    File(PathBuf),
}

/// A path that means the same wherever the program goes to.
pub(super) fn absolute(path: &OsStr) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
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
    /// A file's name need not be text. A program may have gone elsewhere when it is written.
    pub(super) fn from_os(value: &OsStr) -> Self {
        let target = value
            .to_str()
            .map_or_else(|| Self::File(value.into()), Self::parse);
        match target {
            Self::File(path) => Self::File(absolute(path.as_os_str())),
            other => other,
        }
    }

    /// Reads a target as the variable `PROFILER_SUMMARY` spells it; anything that is no keyword is a
    /// file.
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

/// What takes the times.
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
    /// The GPU too, where the program uses CUDA.
    #[default]
    Auto,
    /// The GPU too; that it cannot is an error of [`init`](crate::startup::init), and a warning without it.
    Cuda,
    /// The CPU alone.
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

/// Which default stream of the driver's is taken where no stream is named.
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

/// A signal by its name, as far as programs are free to use it.
#[cfg(unix)]
pub(super) fn parse_signal(text: &str) -> Option<i32> {
    let text = text.trim().to_ascii_uppercase();
    match text.strip_prefix("SIG").unwrap_or(&text) {
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        "HUP" => Some(libc::SIGHUP),
        _ => None,
    }
}

#[cfg(not(unix))]
pub(super) fn parse_signal(_: &str) -> Option<i32> {
    None
}
