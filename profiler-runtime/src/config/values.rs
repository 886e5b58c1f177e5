//! The values of variables that are neither numbers nor paths.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

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

/// Parses the name of a signal that programs may use freely.
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

    #[cfg(unix)]
    #[test]
    fn signals_are_known_with_and_without_their_prefix() {
        assert_eq!(parse_signal("SIGUSR1"), Some(libc::SIGUSR1));
        assert_eq!(parse_signal("usr2"), Some(libc::SIGUSR2));
        assert_eq!(parse_signal("KILL"), None);
    }
}
