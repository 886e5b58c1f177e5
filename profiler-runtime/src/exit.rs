//! The end of the program: what a guard does in order, and an exit handler as well as it can.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::collect;
use crate::config::SummaryTarget;
use crate::health;
use crate::process::fork;
use crate::process::new_file;
use crate::process::output::{Output, PATIENCE, Wait};
use crate::session;
use crate::summary::{Summary, TableOptions, summary};
use crate::switch::with_control;

/// How many calls the last summary that was written told of, and one; zero where none was written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The process that the profiler runs in; zero before it does.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// How long an exiting process waits for loggers.
const AT_EXIT: Duration = Duration::from_secs(2);
/// The same for what was logged after that.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the summary may wait for whoever reads it.
const WAIT: Wait = Wait::InAll(PATIENCE);

/// Has the process flush the loggers and write the summary when it exits.
pub(crate) fn register() {
    if cfg!(feature = "strip") || PROCESS.swap(std::process::id(), Relaxed) != 0 {
        return;
    }
    fork::settle();
    add_handler();
}

/// The same once the driver has been initialised: exit handlers run in the opposite order, so that this one finds the
/// driver alive, and the last GPU times are read. What is measured after it, the first one still writes to a file.
pub(crate) fn register_before_driver() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if PROCESS.load(Relaxed) != 0 && !DONE.swap(true, Relaxed) {
        add_handler();
    }
}

fn add_handler() {
    // Other threads may hold any lock of theirs when it runs: it takes none of theirs, and waits for ours
    // for a bounded time only. In a forked process, where our threads are missing, it does nothing.
    //
    // SAFETY: `at_exit` is a function of this program with the C ABI that `atexit` asks for, and does not
    // unwind: all it does is inside `catch_unwind`. Statics are never destroyed in Rust, and the
    // thread-locals it meets are alive or asked with `try_with`.
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
    if !is_own_process() {
        return;
    }
    let _ = catch_unwind(end);
    // Next the driver ends, with whatever of its own is in use.
    let _ = catch_unwind(crate::cuda::leave);
}

/// What there is to be done at the end of the process. It comes twice where there is a driver: what was waited for once
/// is not waited for again, and a table is printed once.
fn end() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let is_first = !ENDED.swap(true, Relaxed);
    if is_first {
        session::finish(AT_EXIT, session::Ending::All);
        collect::flush(AT_EXIT);
    } else {
        collect::flush(AGAIN);
    }
    let is_file = |target: &SummaryTarget| matches!(target, SummaryTarget::File(_));
    let may_be_written = is_first || with_control(|control| is_file(&control.settings.summary));
    // A guard may have gone long before the calls that matter.
    if may_be_written && WRITTEN.load(Relaxed) <= calls(&summary()) {
        write_summary();
    }
}

/// Writes the summary to where the settings say.
pub(crate) fn write_summary() {
    if !is_own_process() {
        return;
    }
    let mut summary = summary();
    WRITTEN.store(calls(&summary) + 1, Relaxed);
    let target = with_control(|control| control.settings.summary.clone());
    let result = match &target {
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => {
            // They stand there already.
            summary
                .notices
                .retain(|notice| !health::is_on_stderr(notice));
            Output::stderr(WAIT).write_whole(as_table(&summary).as_bytes())
        }
        SummaryTarget::Stdout => Output::stdout(WAIT).write_whole(as_table(&summary).as_bytes()),
        SummaryTarget::File(path) => {
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
            new_file::write(path, text.as_bytes(), WAIT)
        }
    };
    if let Err(error) = result {
        health::notice(&format!(
            "the summary cannot be written to {target}: {error}; set PROFILER_SUMMARY to a file \
             that can be, or to stderr"
        ));
    }
}

fn calls(summary: &Summary) -> u64 {
    summary.rows.iter().map(|row| row.calls).sum()
}

fn as_table(summary: &Summary) -> String {
    format!("\n{summary}\n")
}
