//! Windows of sessions as Chrome traces.

#[cfg(test)]
mod tests;

use std::path::Path;

use profiler_report::ExportError;
use profiler_report::internal::{LAUNCHES, export_chrome_trace};

use crate::session::Trace;

impl Trace {
    /// Writes the window for Perfetto (<https://ui.perfetto.dev>), `chrome://tracing` and HTA; compressed if the name
    /// ends with `.gz`. The file appears under its name when it is complete, and replaces a file of that name. For
    /// TensorBoard's trace plugin, use [`tensorboard_trace_handler`](crate::tensorboard_trace_handler): the plugin shows no
    /// GPU times of operators in the files of this method.
    ///
    /// The file holds the window's [`timeline`](Self::timeline), as
    /// [`Timeline::export_chrome_trace`](crate::report::Timeline::export_chrome_trace) says. Slices of a function show the
    /// end of its path, such as `Trainer::forward`, and more of it if two names of the program would look alike. Names that
    /// the program chose are shown unchanged.
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
    /// let trace = trace?;
    /// let path = std::env::temp_dir().join(format!("trace-{}.json.gz", std::process::id()));
    /// trace.export_chrome_trace(&path)?;
    /// assert!(profiler_trace_validator::validate(&path)?.is_empty());
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        export_chrome_trace(&self.timeline(), path.as_ref(), LAUNCHES)
    }
}
