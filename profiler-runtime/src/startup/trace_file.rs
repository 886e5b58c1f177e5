//! The files that `PROFILER_TRACE` names.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use profiler_host::diagnostics;
use profiler_host::process::output::new_file;
use profiler_report::ExportError;

use super::process_file::{make_folder, obstacle, split, suffixes, with_suffix};
use super::written;
use crate::session::Trace;

/// The path of a trace file. Further windows get other paths beside it.
#[derive(Debug, PartialEq)]
pub(super) struct TraceFile {
    path: PathBuf,
    /// The number of its extensions that are that of the format, and perhaps `gz`.
    endings: usize,
    format: Format,
}

/// The formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Chrome,
    #[cfg(feature = "export")]
    Perfetto,
}

/// The formats by their endings.
const FORMATS: &[(&str, Format)] = &[
    ("json", Format::Chrome),
    #[cfg(feature = "export")]
    ("pftrace", Format::Perfetto),
];

/// The endings of trace files, for messages.
pub(super) const ENDINGS: &str = if cfg!(feature = "export") {
    "`.json`, `.json.gz`, `.pftrace` or `.pftrace.gz`"
} else {
    "`.json` or `.json.gz`"
};

impl TraceFile {
    /// Returns `None` if the path is a folder, or has another ending than those of trace files.
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let mut stem = path.file_name()?.to_owned();
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return None;
        }
        let mut endings = 1;
        if let Some((rest, extension)) = split(&stem)
            && extension.eq_ignore_ascii_case("gz")
        {
            endings = 2;
            stem = rest;
        }
        let (_, extension) = split(&stem)?;
        let mut formats = FORMATS.iter();
        let (_, format) = formats.find(|(ending, _)| extension.eq_ignore_ascii_case(ending))?;
        Some(Self {
            path: path.to_owned(),
            endings,
            format: *format,
        })
    }

    /// Writes a window. From the second one on the name has a number, so that no window overwrites another one, of this
    /// or an earlier session. Step numbers would not do: the last two windows can end with the same one.
    pub(super) fn write(&self, trace: &Trace) -> Result<(), ExportError> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);

        let number = WRITTEN.fetch_add(1, Relaxed) + 1;
        // The write says why it cannot be made.
        let _ = make_folder(&self.path);
        let path = if new_file::is_replaced(&self.path) || obstacle(&self.path).is_some() {
            self.choose(number)?
        } else {
            self.path.clone()
        };
        match self.format {
            Format::Chrome => trace.export_chrome_trace(&path)?,
            #[cfg(feature = "export")]
            Format::Perfetto => trace.export_perfetto(&path)?,
        }
        written::note(path);
        Ok(())
    }

    /// Chooses the path of a window. The windows of a process have the suffix of the first one, as long as their files may be
    /// replaced.
    fn choose(&self, number: u64) -> Result<PathBuf, ExportError> {
        static CHOSEN: AtomicUsize = AtomicUsize::new(0);

        let mut reason = None;
        for (place, suffix) in suffixes().enumerate().skip(CHOSEN.load(Relaxed)) {
            let suffix = match number {
                1 => suffix,
                _ => format!("{suffix}_{number}"),
            };
            let path = with_suffix(&self.path, self.endings, &suffix);
            let Some(obstacle) = obstacle(&path) else {
                CHOSEN.store(place, Relaxed);
                if let Some(reason) = reason {
                    let path = path.display();
                    diagnostics::warn_once(&format!("{reason}: the trace goes to {path}"));
                }
                return Ok(path);
            };
            reason = reason.or(Some(obstacle));
        }
        Err(ExportError::Io {
            path: self.path.clone(),
            source: io::Error::other(reason.unwrap_or_default()),
        })
    }
}

/// Returns `true` for a path that is no trace file, but looks like the path of a file: it has an ending of letters, and no
/// folder of that name exists.
pub(super) fn is_likely_a_file(path: &Path) -> bool {
    let is_word = |ending: &std::ffi::OsStr| {
        let bytes = ending.as_encoded_bytes();
        !bytes.is_empty() && bytes.iter().all(u8::is_ascii_alphabetic)
    };
    let is_folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    !is_folder && path.extension().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_second(path: &str) -> Option<PathBuf> {
        let file = TraceFile::parse(Path::new(path))?;
        Some(with_suffix(&file.path, file.endings, "_2"))
    }

    #[test]
    fn a_suffix_stands_before_the_extensions() {
        for (path, expected) in [
            ("trace.json", "trace_2.json"),
            ("a/b.c/trace.json.gz", "a/b.c/trace_2.json.gz"),
            ("trace.v1.JSON.GZ", "trace.v1_2.JSON.GZ"),
            #[cfg(feature = "export")]
            ("run.pftrace", "run_2.pftrace"),
            #[cfg(feature = "export")]
            ("run.pftrace.gz", "run_2.pftrace.gz"),
        ] {
            assert_eq!(with_second(path), Some(PathBuf::from(expected)));
        }
    }

    #[test]
    fn a_folder_with_an_ending_of_letters_looks_like_a_file() {
        for (path, expected) in [
            ("trace.txt", true),
            ("a/trace.jsn", true),
            ("trace.gz", true),
            ("traces", false),
            ("traces.v2", false),
            ("traces.old/", false),
            ("a.b/traces", false),
            (".", false),
        ] {
            assert_eq!(is_likely_a_file(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn other_paths_are_folders() {
        let folder = std::env::temp_dir();
        assert_eq!(TraceFile::parse(&folder), None);
        for path in [
            "traces",
            "trace.json/",
            "trace.gz",
            "trace.gz.gz",
            "trace.gz.json.txt",
            "trace.txt",
            ".json",
            ".pftrace.gz",
            "/",
        ] {
            assert_eq!(with_second(path), None, "{path}");
        }
    }
}
