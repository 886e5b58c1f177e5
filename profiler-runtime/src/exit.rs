//! The end of the program: what a guard does in order, and an exit handler as well as it can.

use std::fs;
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::collect;
use crate::config::SummaryTarget;
use crate::health;
use crate::summary::{Summary, TableOptions, summary};
use crate::switch::with_control;

static WRITTEN: AtomicBool = AtomicBool::new(false);

/// How long an exiting process waits for loggers.
const AT_EXIT: Duration = Duration::from_secs(2);

/// Has the process flush the loggers and write the summary when it exits.
pub(crate) fn register() {
    static REGISTERED: Once = Once::new();
    if cfg!(feature = "strip") {
        return;
    }
    REGISTERED.call_once(|| {
        // SAFETY: `at_exit` is a function of this program with the C ABI that `atexit` asks for. It
        // does not unwind: all it does is inside `catch_unwind`. It runs while the process is whole:
        // other threads still run, statics are never destroyed in Rust, and the thread-locals it
        // meets are either alive or asked with `try_with`.
        let refused = unsafe { libc::atexit(at_exit) } != 0;
        if refused {
            health::notice(
                "the system takes no more exit handlers: keep the guard of `init` to the end of \
                 `main` to have the summary written",
            );
        }
    });
}

extern "C" fn at_exit() {
    // Nobody is left to tell of a panic.
    let _ = catch_unwind(|| {
        collect::flush(AT_EXIT);
        if !WRITTEN.load(Relaxed) {
            write_summary();
        }
    });
}

/// Writes the summary to where the settings say.
pub(crate) fn write_summary() {
    WRITTEN.store(true, Relaxed);
    let target = with_control(|control| control.settings.summary.clone());
    let result = match &target {
        SummaryTarget::Off => Ok(()),
        SummaryTarget::Stderr => io::stderr().write_all(as_table(&summary()).as_bytes()),
        SummaryTarget::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout
                .write_all(as_table(&summary()).as_bytes())
                .and_then(|()| stdout.flush())
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
