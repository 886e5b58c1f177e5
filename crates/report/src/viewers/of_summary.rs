//! Summaries as files for viewers.

use std::path::Path;

use profiler_host::diagnostics::warn_once;

use crate::stack_metric::{StackMetric, StackMetricError};
use crate::{CallTree, ExportError, Summary};

impl Summary {
    /// Writes profiles for Python's `pstats` and for SnakeViz: CPU times to `path`, and GPU times, if there are any, beside
    /// it, to `run.cuda.prof` for `run.prof`. See [`CallTree::dump_stats`](crate::CallTree::dump_stats).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`); otherwise a warning says so, once.
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
        self.tree_for(path.as_ref()).dump_stats(path)
    }

    /// Writes a profile for pprof, Pyroscope and Parca; compressed if the name ends with `.gz`, as they expect. See
    /// [`CallTree::export_pprof`](crate::CallTree::export_pprof).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`); otherwise a warning says so, once.
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
        self.tree_for(path.as_ref()).export_pprof(path)
    }

    /// Writes collapsed stacks, from which other tools draw flame graphs, weighted by a value such as
    /// `self_cpu_time_total`. See [`CallTree::export_stacks`](crate::CallTree::export_stacks).
    ///
    /// Functions have callers only if callers are counted (`Builder::callers`); otherwise a warning says so, once.
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
        self.tree_for(path.as_ref()).export_stacks(path, metric)
    }

    /// Returns the tree for a file. If it does not show what called what, and nobody chose so, a warning says what to do.
    fn tree_for(&self, path: &Path) -> CallTree {
        let tree = self.call_tree();
        let settings = &self.environment.settings;
        let is_chosen = settings.iter().any(|(name, _)| name == "PROFILER_CALLERS");
        if tree.is_flat && !tree.nodes.is_empty() && !is_chosen {
            let file = path.file_name().unwrap_or_default();
            warn_once(&format!(
                "{}: each function stands alone, since callers were not counted: run the program with PROFILER_CALLERS=1 or \
                 `Builder::callers(true)`",
                file.display()
            ));
        }
        tree
    }
}
