//! The hooks of the exit that need several parts of the profiler. Sessions register a hook of their own.

use std::time::Duration;

use profiler_host::process::exit::{Hook, Phase, Run, register};

use super::closing::close;
use super::flush::flush;
use super::{exit_summary, written};
use crate::collect;
use crate::cuda;

/// How long an exiting process waits for loggers.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long it waits for those that were called after the first run of the hooks.
const LATER_TIMEOUT: Duration = Duration::from_millis(100);

static SUMMARY: Hook = Hook {
    phase: Phase::Summary,
    run: |run| {
        let timeout = match run {
            Run::First => TIMEOUT,
            Run::Later => LATER_TIMEOUT,
        };
        close(|| flush(timeout), || exit_summary::write_at_exit(run));
        if run == Run::First
            && let Some(folder) = collect::folder_of_environment()
        {
            written::note(folder);
        }
        written::say();
    },
};

/// The driver's own exit handler is next, and destroys its objects whether they are in use or not.
static DRIVER: Hook = Hook {
    phase: Phase::Driver,
    run: |_| {
        cuda::shut_down();
        cuda::nvml::shut_down();
    },
};

/// Registers the hooks. Returns `false` if the system takes no more exit handlers.
pub(super) fn register_all() -> bool {
    let mut is_registered = true;
    for hook in [&SUMMARY, &DRIVER] {
        is_registered &= register(hook);
    }
    is_registered
}
