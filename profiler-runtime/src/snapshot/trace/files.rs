//! Windows as files.

use std::path::Path;

use profiler_report::internal::write_gpu_samples;
use profiler_report::{ExportError, StackMetric, StackMetricError};

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
    /// ```
    /// use profiler_runtime::{Profile, measure};
    ///
    /// let ((), trace) = Profile::builder().run(|_| measure!("load", {}));
    /// let trace = trace?;
    /// let path = std::env::temp_dir().join(format!("trace-{}.prof", std::process::id()));
    /// trace.dump_stats(&path)?;
    /// // Then: snakeviz run.prof
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
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
    /// ```
    /// use profiler_runtime::{Profile, measure};
    ///
    /// let ((), trace) = Profile::builder().run(|_| measure!("load", {}));
    /// let trace = trace?;
    /// let path = std::env::temp_dir().join(format!("trace-{}.pb.gz", std::process::id()));
    /// trace.export_pprof(&path)?;
    /// // Then: go tool pprof -http=: run.pb.gz
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_pprof(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().export_pprof(path)
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
    /// ```
    /// use profiler_runtime::{Profile, measure};
    ///
    /// let ((), trace) = Profile::builder().run(|_| measure!("load", {}));
    /// let trace = trace?;
    /// let path = std::env::temp_dir().join(format!("trace-{}.folded", std::process::id()));
    /// trace.export_stacks(&path, "self_cpu_time_total")?;
    /// // Then: inferno-flamegraph < run.folded > run.svg
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_stacks(
        &self,
        path: impl AsRef<Path>,
        metric: impl TryInto<StackMetric, Error: Into<StackMetricError>>,
    ) -> Result<(), ExportError> {
        self.timeline().export_stacks(path, metric)
    }

    /// Writes the trace for Perfetto (<https://ui.perfetto.dev>) in its own format, as
    /// [`Timeline::export_perfetto`](crate::report::Timeline::export_perfetto) does; compressed if the name ends with `.gz`.
    ///
    /// Prefer it to [`export_chrome_trace`](Self::export_chrome_trace) for large windows that only Perfetto has to read: the
    /// files are a quarter of the size, with GPU times a tenth. Other tools do not read them.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let ((), trace) = Profile::builder().run(|_| {
    ///     let _scope = scope!("forward");
    /// });
    /// let path = std::env::temp_dir().join(format!("trace-{}.pftrace", std::process::id()));
    /// trace?.export_perfetto(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_perfetto(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().export_perfetto(path)
    }

    /// Writes the window as OpenTelemetry's spans, as [`Timeline::export_otlp`](crate::report::Timeline::export_otlp) does.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Profile, scope};
    ///
    /// let ((), trace) = Profile::builder().run(|_| {
    ///     let _scope = scope!("forward");
    /// });
    /// let path = std::env::temp_dir().join(format!("window-{}.otlp.jsonl", std::process::id()));
    /// trace?.export_otlp(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_otlp(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        self.timeline().export_otlp(path)
    }

    /// Writes the samples of the devices in the window as CSV, as
    /// [`export_gpu_samples`](crate::report::export_gpu_samples) does for the whole run.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::Profile;
    ///
    /// let ((), trace) = Profile::builder().run(|_| ());
    /// # let path = std::env::temp_dir().join(format!("window-gpu-samples-{}.csv", std::process::id()));
    /// trace?.export_gpu_samples(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_gpu_samples(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        write_gpu_samples(path.as_ref(), &self.gpu_samples.devices)
    }
}
