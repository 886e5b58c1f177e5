//! The end of the program: what a guard does in order, and an exit handler as well as it can.

use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::collect;
use crate::config::SummaryTarget;
use crate::health;
use crate::summary::{Summary, TableOptions, summary};
use crate::switch::with_control;

static WRITTEN: AtomicBool = AtomicBool::new(false);
/// The process that the profiler runs in; zero before it does.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// How long an exiting process waits for loggers.
const AT_EXIT: Duration = Duration::from_secs(2);

/// Has the process flush the loggers and write the summary when it exits.
pub(crate) fn register() {
    if cfg!(feature = "strip") || PROCESS.swap(std::process::id(), Relaxed) != 0 {
        return;
    }
    // SAFETY: `at_exit` is a function of this program with the C ABI that `atexit` asks for. It does
    // not unwind: all it does is inside `catch_unwind`. It may run while other threads hold any lock of
    // theirs, so that it takes none of theirs, and waits for ours for a bounded time only. Statics are
    // never destroyed in Rust, and the thread-locals it meets are alive or asked with `try_with`. In a
    // forked process, where our threads are missing, it does nothing.
    let refused = unsafe { libc::atexit(at_exit) } != 0;
    if refused {
        health::notice(
            "the system takes no more exit handlers: keep the guard of `init` to the end of `main` to \
             have the summary written",
        );
    }
}

/// Whether this is the process that the profiler was set up in, and not one forked from it, which has
/// all its counts and none of its threads.
pub(crate) fn is_own_process() -> bool {
    matches!(PROCESS.load(Relaxed), 0) || PROCESS.load(Relaxed) == std::process::id()
}

extern "C" fn at_exit() {
    // Nobody is left to tell of a panic.
    let _ = catch_unwind(|| {
        if !is_own_process() {
            return;
        }
        collect::flush(AT_EXIT);
        if !WRITTEN.load(Relaxed) {
            write_summary();
        }
    });
}

/// Writes the summary to where the settings say.
pub(crate) fn write_summary() {
    if !is_own_process() {
        return;
    }
    WRITTEN.store(true, Relaxed);
    let target = with_control(|control| control.settings.summary.clone());
    let result = match &target {
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => {
            let mut summary = summary();
            // They stand there already.
            summary
                .notices
                .retain(|notice| !health::is_on_stderr(notice));
            stderr().and_then(|mut stderr| stderr.write_all(as_table(&summary).as_bytes()))
        }
        SummaryTarget::Stdout => {
            stdout().and_then(|mut stdout| stdout.write_all(as_table(&summary()).as_bytes()))
        }
        SummaryTarget::File(path) => {
            let summary = summary();
            let ends_in = |extension| {
                path.extension()
                    .is_some_and(|other| other.eq_ignore_ascii_case(extension))
            };
            let text = if ends_in("json") {
                summary.to_json()
            } else if ends_in("csv") {
                summary.to_csv()
            } else {
                // A file has no width.
                summary.table(&TableOptions::default().width(usize::MAX))
            };
            fs::write(path, text)
        }
    };
    if let Err(error) = result {
        health::notice(&format!(
            "the summary cannot be written to {target:?}: {error}; set PROFILER_SUMMARY to a file \
             that can be, or to stderr"
        ));
    }
}

fn as_table(summary: &Summary) -> String {
    format!("\n{summary}\n")
}

/// Standard error, past the lock of `std`: another thread may hold that for as long as it likes.
#[cfg(unix)]
pub(crate) fn stderr() -> io::Result<File> {
    use std::os::fd::AsFd;

    io::stderr().as_fd().try_clone_to_owned().map(File::from)
}

/// Standard output, the same way. What `std` keeps in its buffer comes later.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;

    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
pub(crate) fn stderr() -> io::Result<io::Stderr> {
    Ok(io::stderr())
}

#[cfg(not(unix))]
fn stdout() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}
