//! Time lines as files for viewers.

use std::path::Path;

use crate::ExportError;
use crate::stack_metric::{StackMetric, StackMetricError};
use crate::{CallTreeOptions, Timeline};

impl Timeline {
    /// Writes profiles for Python's `pstats` and for SnakeViz: CPU times to `path`, and GPU times, if there are any, beside
    /// it, to `run.cuda.prof` for `run.prof`. See [`CallTree::dump_stats`](crate::CallTree::dump_stats).
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # let timeline = profiler_report::Timeline::default();
    /// let path = std::env::temp_dir().join(format!("timeline-{}.prof", std::process::id()));
    /// timeline.dump_stats(&path)?;
    /// // Then: snakeviz run.prof
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dump_stats(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.call_tree(CallTreeOptions::new()).dump_stats(path)
    }

    /// Writes a profile for pprof, Pyroscope and Parca, with the labels `thread`, `stream` and `step`; compressed if the
    /// name ends with `.gz`, as they expect. See [`CallTree::export_pprof`](crate::CallTree::export_pprof).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # let timeline = profiler_report::Timeline::default();
    /// let path = std::env::temp_dir().join(format!("timeline-{}.pb.gz", std::process::id()));
    /// timeline.export_pprof(&path)?;
    /// // Then: go tool pprof -http=: run.pb.gz
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_pprof(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let labels = CallTreeOptions::new().thread(true).stream(true).step(true);
        self.call_tree(labels).export_pprof(path)
    }

    /// Writes collapsed stacks, from which other tools draw flame graphs, weighted by a value such as
    /// `self_cuda_time_total`. See [`CallTree::export_stacks`](crate::CallTree::export_stacks).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no value of this name, if no call has it, or if the file cannot be written.
    ///
    /// # Examples
    ///
    /// ```
    /// # use profiler_report::{Slice, SliceName, Timeline, Track};
    /// # let mut timeline = Timeline::default();
    /// # timeline.tracks.push(Track::default());
    /// # timeline.names.push(SliceName { text: "load".into(), ..SliceName::default() });
    /// # timeline.slices.push(Slice { duration_ns: 1_500, self_ns: 1_500, ..Slice::default() });
    /// let path = std::env::temp_dir().join(format!("timeline-{}.folded", std::process::id()));
    /// timeline.export_stacks(&path, "self_cpu_time_total")?;
    /// // Then: inferno-flamegraph < run.folded > run.svg
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_stacks(
        &self,
        path: impl AsRef<Path>,
        metric: impl TryInto<StackMetric, Error: Into<StackMetricError>>,
    ) -> Result<(), ExportError> {
        self.call_tree(CallTreeOptions::new())
            .export_stacks(path, metric)
    }
}
