//! Summaries as files for viewers.

use std::path::Path;

use crate::ExportError;
use crate::Summary;
use crate::stack_metric::{StackMetric, StackMetricError};

impl Summary {
    /// Writes profiles for Python's `pstats` and for SnakeViz: CPU times to `path`, and GPU times, if there are any, beside
    /// it, to `run.cuda.prof` for `run.prof`. See [`CallTree::dump_stats`](crate::CallTree::dump_stats).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`).
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("summary-{}.prof", std::process::id()));
    /// summary().dump_stats(&path)?;
    /// // Then: snakeviz run.prof
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dump_stats(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.call_tree().dump_stats(path)
    }

    /// Writes a profile for pprof, Pyroscope and Parca; compressed if the name ends with `.gz`, as they expect. See
    /// [`CallTree::export_pprof`](crate::CallTree::export_pprof).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("summary-{}.pb.gz", std::process::id()));
    /// summary().export_pprof(&path)?;
    /// // Then: go tool pprof -http=: run.pb.gz
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_pprof(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.call_tree().export_pprof(path)
    }

    /// Writes profiles for speedscope (<https://www.speedscope.app>). See
    /// [`CallTree::export_speedscope`](crate::CallTree::export_speedscope).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("summary-{}.speedscope.json", std::process::id()));
    /// summary().export_speedscope(&path)?;
    /// // Then open it in https://www.speedscope.app.
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_speedscope(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.call_tree().export_speedscope(path)
    }

    /// Writes collapsed stacks, from which other tools draw flame graphs, weighted by a value such as
    /// `self_cpu_time_total`. See [`CallTree::export_stacks`](crate::CallTree::export_stacks).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no value of this name, if no call has it, or if the file cannot be written.
    ///
    /// # Examples
    ///
    /// ```
    /// # use profiler_report::{Row, Summary, Times};
    /// # fn summary() -> Summary {
    /// #     let cpu = Some(Times { calls: 1, self_ns: 1.0, ..Times::default() });
    /// #     Summary { rows: vec![Row { name: "load".into(), calls: 1, cpu, ..Row::default() }], ..Summary::default() }
    /// # }
    /// let path = std::env::temp_dir().join(format!("summary-{}.folded", std::process::id()));
    /// summary().export_stacks(&path, "self_cpu_time_total")?;
    /// // Then: inferno-flamegraph < run.folded > run.svg
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_stacks(
        &self,
        path: impl AsRef<Path>,
        metric: impl TryInto<StackMetric, Error: Into<StackMetricError>>,
    ) -> Result<(), ExportError> {
        self.call_tree().export_stacks(path, metric)
    }
}
