//! Windows as files for viewers.

use std::path::Path;

use super::metric::{StackMetric, StackMetricError};
use crate::report::export::ExportError;
use crate::session::Trace;

impl Trace {
    /// Writes profiles for Python's `pstats` and for SnakeViz: CPU times to `path`, and GPU times, if there are any, beside
    /// it, to `run.cuda.prof` for `run.prof`. See [`CallTree::dump_stats`](crate::report::CallTree::dump_stats).
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn handler(trace: &profiler_runtime::Trace) -> Result<(), profiler_runtime::report::ExportError> {
    /// // snakeviz window.prof
    /// trace.dump_stats("window.prof")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dump_stats(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().dump_stats(path)
    }

    /// Writes a profile for pprof, Pyroscope and Parca, with the labels `thread`, `stream` and `step`; compressed if the
    /// name ends with `.gz`, as they expect. See [`CallTree::export_pprof`](crate::report::CallTree::export_pprof).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn handler(trace: &profiler_runtime::Trace) -> Result<(), profiler_runtime::report::ExportError> {
    /// // go tool pprof -top -sample_index=cuda -tagfocus=step=12 window.pb.gz
    /// trace.export_pprof("window.pb.gz")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_pprof(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().export_pprof(path)
    }

    /// Writes profiles for speedscope (<https://www.speedscope.app>): all calls by CUDA time and by CPU time, then each
    /// thread and each stream over time. See [`Timeline::export_speedscope`](crate::report::Timeline::export_speedscope).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn handler(trace: &profiler_runtime::Trace) -> Result<(), profiler_runtime::report::ExportError> {
    /// trace.export_speedscope("window.speedscope.json")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_speedscope(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().export_speedscope(path)
    }

    /// Writes collapsed stacks, from which other tools draw flame graphs, weighted by a value such as
    /// `self_cuda_time_total`. See [`CallTree::export_stacks`](crate::report::CallTree::export_stacks).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no value of this name, if no call has it, or if the file cannot be written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn handler(trace: &profiler_runtime::Trace) -> Result<(), profiler_runtime::report::ExportError> {
    /// // inferno-flamegraph < window.folded > window.svg
    /// trace.export_stacks("window.folded", "self_cuda_time_total")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_stacks(
        &self,
        path: impl AsRef<Path>,
        metric: impl TryInto<StackMetric, Error: Into<StackMetricError>>,
    ) -> Result<(), ExportError> {
        self.timeline().export_stacks(path, metric)
    }
}
