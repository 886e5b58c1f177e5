//! The summary at the end of the program.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::process::exit::Run;
use profiler_host::process::fork;
use profiler_host::process::output::READER_TIMEOUT;
use profiler_report::Summary;

use super::{mistakes, summary_target, summary_writer};
use crate::config::SummaryTarget;
use crate::snapshot::summary;
use crate::switch::with_control;

/// The number of calls in the last summary that was written + 1; 0 if none was written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Writes the summary in an exit hook, unless a guard of `init` has written one and nothing was measured since.
pub(super) fn write_at_exit(run: Run) {
    let target = target();
    if matches!(target, SummaryTarget::Off) {
        return mistakes::warn();
    }
    // The second run comes from the exit handler that runs last. A file is replaced; a table would be printed twice.
    let may_write = run == Run::First || matches!(target, SummaryTarget::File(_));
    let written = WRITTEN.load(Relaxed);
    // To count the calls is to build the whole summary.
    if may_write && (written == 0 || written <= calls(&summary())) {
        write();
    }
}

/// Writes the last summary to the target that the settings give.
pub(super) fn write() {
    if !fork::is_own_process() {
        return;
    }
    // It would replace the last summary by an earlier one.
    summary_writer::stop(READER_TIMEOUT);
    mistakes::warn();
    let mut summary = summary();
    WRITTEN.store(calls(&summary) + 1, Relaxed);
    summary.is_last = true;
    summary_target::write(&target(), &summary);
}

fn target() -> SummaryTarget {
    with_control(|control| control.settings.summary.clone())
}

fn calls(summary: &Summary) -> u64 {
    summary.rows.iter().map(|row| row.calls).sum()
}
