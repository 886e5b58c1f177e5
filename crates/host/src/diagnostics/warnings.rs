//! Warnings: each is emitted once, and shown again below the summary.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::printable;
use super::user_code;
use crate::process::fork;
use crate::process::output::{Output, WriteTimeout};
use crate::sync::{self, Lock, Locked, ReentrancyGuard};

/// The longest time that a warning waits for a full pipe. The waiting thread may be one of the program's.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// The most warnings that are kept.
const MAX_WARNINGS: usize = 64;
static WARNINGS: Lock<Vec<Warning>> = Lock::new(Vec::new());

struct Warning {
    message: String,
    on_stderr: bool,
    /// `false` if summaries do not repeat it.
    is_notice: bool,
}

fn warnings() -> Locked<'static, Vec<Warning>> {
    WARNINGS.lock()
}

/// Emits a warning, unless it was emitted before: to `tracing`, or to standard error in a program without a subscriber.
/// The summary repeats it.
pub fn warn_once(message: &str) {
    warn(message, true);
}

/// Emits a warning as [`warn_once`] does, which no summary repeats: it is about one report, which says it itself.
pub fn warn_of_report(message: &str) {
    warn(message, false);
}

fn warn(message: &str, is_notice: bool) {
    // The message may contain names and errors of the program.
    let printable = printable(message);
    let mut message = &*printable;
    // Ask on this thread: a subscriber may be set for another thread only, or may not listen to warnings. The
    // subscriber is user code.
    let has_subscriber =
        || tracing::event_enabled!(target: "profiler_runtime", tracing::Level::WARN);
    // A forked child shows warnings below its summary only: at the fork, other threads may have held the locks of a
    // subscriber or of standard error.
    let is_child = fork::is_child();
    let on_stderr = !is_child && !user_code::call(has_subscriber).unwrap_or(false);
    {
        let _guard = ReentrancyGuard::try_enter();
        let mut warnings = warnings();
        if warnings.len() > MAX_WARNINGS || warnings.iter().any(|known| known.message == message) {
            return;
        }
        if warnings.len() == MAX_WARNINGS {
            message = "further warnings are not shown";
        }
        warnings.push(Warning {
            message: message.to_owned(),
            on_stderr,
            is_notice,
        });
    }
    if is_child {
        return;
    }
    // With the lock released: a subscriber is user code, which may call back into the profiler or panic.
    user_code::call(|| {
        if on_stderr {
            let line = format!("profiler: warning: {message}\n");
            if !write_to_stderr(&line) {
                // The summary on standard error leaves out what stands there already: show this one in it.
                mark_unwritten(message);
            }
        } else {
            tracing::warn!(target: "profiler_runtime", "{message}");
        }
    });
}

/// Writes a line to standard error. Returns `false` if it could not be written.
///
/// After a timeout the next line does not wait, until the pipe takes a line again: many warnings must not each keep a
/// thread for the full timeout.
fn write_to_stderr(line: &str) -> bool {
    static WAS_FULL: AtomicBool = AtomicBool::new(false);

    // Tests plant panics. Written so, a warning is shown with a test that fails.
    #[cfg(test)]
    if cfg!(test) {
        eprint!("{line}");
        return true;
    }
    let limit = if WAS_FULL.load(Relaxed) {
        Duration::ZERO
    } else {
        STDERR_TIMEOUT
    };
    let written = Output::stderr(WriteTimeout::Total(limit)).write_whole(line.as_bytes());
    let is_full = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    WAS_FULL.store(written.as_ref().is_err_and(is_full), Relaxed);
    written.is_ok()
}

fn mark_unwritten(message: &str) {
    let mut warnings = warnings();
    if let Some(warning) = warnings.iter_mut().find(|known| known.message == message) {
        warning.on_stderr = false;
    }
}

/// Returns all warnings so far that summaries repeat.
pub fn notices() -> Vec<String> {
    let _guard = ReentrancyGuard::try_enter();
    let messages = warnings()
        .iter()
        .filter(|known| known.is_notice)
        .map(|known| known.message.clone())
        .collect();
    with_abandoned(messages, sync::abandoned())
}

/// Adds a warning about data that a fork made inaccessible. Its count grows as threads come to the locks, so it is
/// composed anew each time.
fn with_abandoned(mut messages: Vec<String>, locks: usize) -> Vec<String> {
    if locks > 0 {
        messages.push(format!(
            "this process was forked while other threads held {locks} of the profiler's locks: what these protected is \
             missing here; fork before the threads start, or measure in one of the two processes"
        ));
    }
    messages
}

/// Returns `true` if the warning was written to standard error.
pub fn is_on_stderr(message: &str) -> bool {
    warnings()
        .iter()
        .any(|known| known.on_stderr && known.message == message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_kept_once() {
        warn_once("warnings: emitted twice");
        warn_once("warnings: emitted twice");
        let kept = notices();
        let kept = kept
            .iter()
            .filter(|known| *known == "warnings: emitted twice");
        assert_eq!(kept.count(), 1);
    }

    #[test]
    fn a_warning_about_one_report_is_in_no_summary() {
        warn_of_report("warnings: of one report");
        assert!(
            notices()
                .iter()
                .all(|known| known != "warnings: of one report")
        );
    }

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        warn_once("warnings: \u{1b}[31m");
        assert!(notices().contains(&"warnings: \u{fffd}[31m".to_owned()));
    }

    #[test]
    fn locks_that_a_fork_left_held_are_warned_of() {
        assert!(with_abandoned(Vec::new(), 0).is_empty());
        assert!(with_abandoned(Vec::new(), 2)[0].contains("held 2 of the profiler's locks"));
    }
}
