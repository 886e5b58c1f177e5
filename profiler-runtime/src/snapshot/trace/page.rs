//! The page of a window.

use std::path::Path;
use std::sync::Arc;

use profiler_report::{CallTreeOptions, ExportError, KeyAverages, Page, Summary, Timeline};

use crate::session::Trace;
use crate::snapshot::summary;
use crate::snapshot::timeline::why_empty;

impl Trace {
    /// Writes the window as a page that opens in a browser without a network; see [`Page`](crate::report::Page). The page has
    /// the key averages of the window, its call tree and its time line.
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
    /// let path = std::env::temp_dir().join(format!("window-{}.html", std::process::id()));
    /// trace?.export_html(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_html(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let timeline = self.timeline();
        let averages = self.key_averages();
        Page::new()
            .summary(&of_window(self, &timeline, averages))
            .timeline(&timeline)
            .write(path)
    }
}

/// Returns the key averages of a window with the environment, the warnings and the costs of the process.
fn of_window(trace: &Trace, timeline: &Timeline, averages: KeyAverages) -> Summary {
    let of_process = summary();
    let why_empty = why_empty(trace);
    Summary {
        rows: averages.rows,
        self_cpu_time_total_ns: averages.self_cpu_time_total_ns,
        self_cuda_time_total_ns: averages.self_cuda_time_total_ns,
        call_tree: Some(Arc::new(timeline.call_tree(CallTreeOptions::new()))),
        notes: averages
            .notes
            .into_iter()
            .filter(|note| Some(note) != why_empty.as_ref())
            .collect(),
        wall_ns: trace.duration().as_secs_f64() * 1e9,
        // The times of all calls of a window are known.
        percentile_error: 0.0,
        nothing_measured: trace.is_empty().then(|| {
            why_empty.unwrap_or_else(|| "no scope began and ended in the window".to_owned())
        }),
        // These are about logs, which no window has.
        delivered: 0,
        dropped: Vec::new(),
        unsaved: 0,
        ..of_process
    }
}
