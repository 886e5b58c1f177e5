//! The end of the program: what a guard does in order, and an exit handler as well as it can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::flush::flush;
use crate::config::SummaryTarget;
use crate::cuda;
use crate::diagnostics::{self, user_code};
use crate::process::new_file;
use crate::process::output::{Output, PATIENCE, Wait};
use crate::process::{self, fork};
use crate::report::summary::{Summary, TableOptions, summary};
use crate::session;
use crate::switch::with_control;

/// How many calls the last summary that was written told of, and one; zero where none was written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// How long an exiting process waits for loggers.
const AT_EXIT: Duration = Duration::from_secs(2);
/// The same for what was logged after that.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the summary may wait for whoever reads it.
const WAIT: Wait = Wait::InAll(PATIENCE);

/// Has the process flush the loggers and write the summary when it exits.
pub(super) fn register() {
    fork::settle();
    add_handler();
    cuda::on_first_context(add_handler_before_driver);
}

/// Adds a second handler once the driver has been initialised: exit handlers run in the opposite order, so that this
/// one finds the driver alive, and reads the last GPU times. What is measured after it, the first one still writes to a
/// file.
fn add_handler_before_driver() {
    add_handler();
}

fn add_handler() {
    if !process::exit::register(at_exit) {
        diagnostics::warn_once(
            "the system takes no more exit handlers: keep the guard of `init` to the end of `main` to \
             have the summary written",
        );
    }
}

extern "C" fn at_exit() {
    // A forked process has no thread that could finish anything.
    if !fork::is_own_process() {
        return;
    }
    // Nothing is left that could report a panic.
    let _ = user_code::call(end);
    // The driver ends next, and destroys its objects whether they are in use or not.
    let _ = user_code::call(cuda::shut_down);
}

/// What there is to be done at the end of the process. It comes twice where there is a driver: what was waited for once
/// is not waited for again, and a table is printed once.
fn end() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    let is_first = !ENDED.swap(true, Relaxed);
    if is_first {
        session::finish_at_exit();
        flush(AT_EXIT);
    } else {
        flush(AGAIN);
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
    if !fork::is_own_process() {
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
                .retain(|notice| !diagnostics::is_on_stderr(notice));
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
        diagnostics::warn_once(&format!(
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
