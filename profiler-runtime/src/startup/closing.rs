//! The end of measuring: the loggers are flushed and the last summary is written, of one moment.

use profiler_host::diagnostics::catch_own_panic;

use super::flush::FlushReport;
use crate::collect;
use crate::cuda;
use crate::switch;

/// Flushes the loggers and writes the last summary. Threads of the program may still run: meanwhile their calls are neither
/// measured nor logged, and what calls that were open log stays in the rings, so that each call of the summary has its entry in one
/// of its numbers.
pub(super) fn close(flush: impl FnOnce() -> FlushReport, write: impl FnOnce()) {
    switch::hold(|| {
        collect::hold(|| {
            // Each step on its own, so that a panic in one does not skip the others.
            catch_own_panic("loggers were flushed", flush);
            catch_own_panic("the last sample was taken", cuda::nvml::last_sample);
            catch_own_panic("the summary was written", write);
        });
    });
}
