//! The session that the environment asks for, and who turns it.

#[cfg(feature = "trace")]
use std::ffi::OsString;
#[cfg(feature = "trace")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(feature = "trace")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::control;
#[cfg(feature = "trace")]
use crate::clock::clock;
use crate::config::SessionSettings;
use crate::diagnostics;
#[cfg(feature = "trace")]
use crate::report::export::{ExportError, tensorboard_trace_handler};
#[cfg(feature = "trace")]
use crate::session::Trace;
use crate::session::{Profile, ProfileBuilder, environment};
use crate::switch::with_control;
#[cfg(feature = "trace")]
use crate::sync::RaceCell;

/// Ends a step of the session that the environment asked for (`PROFILER_TRACE`, `PROFILER_SCHEDULE`) and begins the
/// next one; nothing where it asked for none. [`step!`](crate::step!) is the same.
///
/// Sessions of the program's own have steps of their own: [`Profile::step`].
///
/// # Examples
///
/// ```
/// for _epoch in 0..3 {
///     // the training
///     profiler_runtime::step();
/// }
/// ```
pub fn step() {
    super::ensure_started();
    environment::step();
}

/// Does what the environment asks for, when it has been read.
pub(crate) fn begin(settings: &SessionSettings) {
    if settings.trace.is_none() || cfg!(feature = "strip") {
        return;
    }
    if settings.control.is_none() && settings.signal.is_none() {
        start();
    } else {
        control::watch(settings.control.clone(), settings.signal);
    }
}

/// Starts the session, unless it runs.
pub(super) fn start() {
    let settings = with_control(|control| control.settings.session.clone());
    let Some(target) = settings.trace else { return };
    let start = || {
        let mut builder = Profile::builder().of_environment();
        if let Some(schedule) = settings.schedule {
            builder = builder.schedule(schedule);
        }
        write_to(builder, target).start()
    };
    if let Err(error) = environment::start(start) {
        diagnostics::warn_once(&format!("PROFILER_TRACE: {error}"));
    }
}

/// Has each window written to where the environment says.
#[cfg(feature = "trace")]
fn write_to(builder: ProfileBuilder, target: PathBuf) -> ProfileBuilder {
    match FileName::of(&target) {
        Some(name) => {
            builder.on_trace_ready(move |trace: &Trace| write_file(trace, &target, &name))
        }
        None => builder.on_trace_ready(tensorboard_trace_handler(target)),
    }
}

/// The name of a file for traces, which need not be text: what goes before a number, and the endings.
#[cfg(feature = "trace")]
#[derive(Debug, PartialEq)]
struct FileName {
    stem: OsString,
    endings: Vec<OsString>,
}

#[cfg(feature = "trace")]
impl FileName {
    /// None where the path is that of a folder.
    fn of(path: &Path) -> Option<Self> {
        let mut stem = path.file_name()?.to_owned();
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return None;
        }
        let mut endings = Vec::new();
        for (expected, is_needed) in [("gz", false), ("json", true)] {
            let plain = PathBuf::from(&stem);
            match plain.extension() {
                Some(ending) if ending.eq_ignore_ascii_case(expected) => {
                    endings.insert(0, ending.to_owned());
                    plain.file_stem()?.clone_into(&mut stem);
                }
                _ if is_needed => return None,
                _ => {}
            }
        }
        Some(Self { stem, endings })
    }

    /// With something between the two.
    fn with(&self, middle: &str) -> OsString {
        let mut name = self.stem.clone();
        name.push(middle);
        for ending in &self.endings {
            name.push(".");
            name.push(ending);
        }
        name
    }
}

/// No window overwrites another: from the second on a number stands in the name, of whatever session it is. Steps
/// would not do: the last two windows may have ended with the same one.
#[cfg(feature = "trace")]
fn write_file(trace: &Trace, target: &Path, name: &FileName) -> Result<(), ExportError> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    static WHOSE: RaceCell<String> = RaceCell::new();
    let number = WRITTEN.fetch_add(1, Relaxed) + 1;
    let whose = WHOSE.get_or_init(|| process_part(target));
    let numbered = if number > 1 {
        format!("_{number}")
    } else {
        String::new()
    };
    trace.export_chrome_trace(target.with_file_name(name.with(&format!("{whose}{numbered}"))))
}

/// What tells the files of this process from those of others that have the same variables: the rank where there is
/// one, the process's number where another process has written the file since this one began.
#[cfg(feature = "trace")]
fn process_part(target: &Path) -> String {
    if let Some(rank) = crate::report::export::own_rank() {
        return format!("_rank{rank}");
    }
    let began = clock().began();
    let written = std::fs::metadata(target).and_then(|file| file.modified());
    if written.is_ok_and(|written| written >= began) {
        format!("_{}", std::process::id())
    } else {
        String::new()
    }
}

#[cfg(not(feature = "trace"))]
fn write_to(builder: ProfileBuilder, _: PathBuf) -> ProfileBuilder {
    diagnostics::warn_once(
        "PROFILER_TRACE is set, but profiler-runtime was built without its feature `trace`: nothing is written; \
         build it with the feature",
    );
    builder
}
