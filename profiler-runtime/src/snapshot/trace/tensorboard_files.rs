//! Traces in a folder that TensorBoard's trace plugin reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use profiler_host::process::host;
use profiler_host::process::platform::process_id;
use profiler_report::internal::export_chrome_trace;
use profiler_report::{ExportError, LaunchCategory};

use crate::session::Trace;

/// Returns a handler for [`on_trace_ready`](crate::session::ProfileBuilder::on_trace_ready) that writes each trace to `folder`
/// as `{worker}.{time}.pt.trace.json`, like PyTorch's function of this name. The folder is created if it does not
/// exist.
///
/// The files are for TensorBoard's trace plugin (`pip install torch-tb-profiler`). For HTA, use
/// `TensorBoardTraces::new(folder).launch_category(LaunchCategory::CudaRuntime).handler()`: [`LaunchCategory`] lists
/// what each tool shows.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Profile, Schedule, tensorboard_trace_handler};
///
/// # let dir = std::env::temp_dir().join(format!("traces-{}", std::process::id()));
/// let profile = Profile::builder()
///     .schedule(Schedule::new().wait(1).warmup(1).active(3).repeat(1))
///     .on_trace_ready(tensorboard_trace_handler(&dir))
///     .start()?;
/// for _ in 0..10 {
///     profile.step();
/// }
/// # profile.stop();
/// # assert!(profile.wait(std::time::Duration::from_secs(10)));
/// # if profiler_runtime::is_enabled() { assert_eq!(std::fs::read_dir(&dir)?.count(), 1); }
/// # let _ = std::fs::remove_dir_all(dir);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn tensorboard_trace_handler(
    folder: impl AsRef<Path>,
) -> impl FnMut(&Trace) -> Result<(), ExportError> + Clone + Send + Sync + 'static {
    TensorBoardTraces::new(folder).handler()
}

/// Options for traces that TensorBoard's trace plugin and HTA read.
///
/// # Examples
///
/// ```
/// use profiler_runtime::report::{LaunchCategory, TensorBoardTraces};
/// use profiler_runtime::Profile;
///
/// # let dir = std::env::temp_dir().join(format!("named-traces-{}", std::process::id()));
/// let traces = TensorBoardTraces::new(&dir)
///     .worker_name("trainer-0")
///     .gzip(true)
///     // For HTA; without this line, for TensorBoard's trace plugin.
///     .launch_category(LaunchCategory::CudaRuntime);
/// let profile = Profile::builder().on_trace_ready(traces.handler()).start()?;
/// profile.stop();
/// # assert!(profile.wait(std::time::Duration::from_secs(10)));
/// # let _ = std::fs::remove_dir_all(dir);
/// # Ok::<(), profiler_runtime::session::ProfileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is written before `handler` is given to a session, or `export` called"]
pub struct TensorBoardTraces {
    folder: PathBuf,
    worker: Option<String>,
    gzip: bool,
    launches: LaunchCategory,
}

impl TensorBoardTraces {
    /// Writes traces to `folder`, which is created if it does not exist.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self {
            folder: folder.as_ref().to_owned(),
            worker: None,
            gzip: false,
            launches: LaunchCategory::default(),
        }
    }

    /// Sets the name of the process; `{host}_{process id}` by default. Characters that file names cannot contain are
    /// replaced by `_`.
    pub fn worker_name(self, name: impl AsRef<str>) -> Self {
        Self {
            worker: Some(tidy(name.as_ref())),
            ..self
        }
    }

    /// Compresses the files (`.gz`).
    pub fn gzip(self, gzip: bool) -> Self {
        Self { gzip, ..self }
    }

    /// Sets the category of launches; [`LaunchCategory::Runtime`] by default, for TensorBoard's trace plugin.
    pub fn launch_category(self, launches: LaunchCategory) -> Self {
        Self { launches, ..self }
    }

    /// Returns the handler that writes each window of a session, for
    /// [`on_trace_ready`](crate::session::ProfileBuilder::on_trace_ready).
    pub fn handler(
        self,
    ) -> impl FnMut(&Trace) -> Result<(), ExportError> + Clone + Send + Sync + 'static {
        move |trace: &Trace| self.export(trace).map(drop)
    }

    /// Writes a trace and returns its path.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created, or the file cannot be written.
    pub fn export(&self, trace: &Trace) -> Result<PathBuf, ExportError> {
        fs::create_dir_all(&self.folder).map_err(|source| ExportError::Io {
            path: self.folder.clone(),
            source,
        })?;
        let default = || format!("{}_{}", host::name(), process_id());
        let worker = self.worker.clone().unwrap_or_else(default);
        let suffix = if self.gzip { ".gz" } else { "" };
        let name = format!("{worker}.{}.pt.trace.json{suffix}", unique_time());
        let path = self.folder.join(name);
        export_chrome_trace(&trace.timeline(), &path, self.launches.as_str())?;
        Ok(path)
    }
}

/// Returns the time in nanoseconds, or a later one: no two traces of a process get the same.
fn unique_time() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let next = |last: u64| Some(now.max(last.saturating_add(1)));
    match LAST.fetch_update(Relaxed, Relaxed, next) {
        Ok(last) | Err(last) => now.max(last.saturating_add(1)),
    }
}

/// Returns a name that can be part of a file name on any system.
fn tidy(name: &str) -> String {
    let safe = |letter: char| {
        let is_special = letter.is_control() || r#"/\:*?"<>|"#.contains(letter);
        if is_special { '_' } else { letter }
    };
    let tidy: String = name
        .trim()
        .trim_start_matches('.')
        .chars()
        .map(safe)
        .collect();
    if tidy.is_empty() {
        "worker".to_owned()
    } else {
        tidy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_never_given_twice() {
        let times: Vec<u64> = (0..1000).map(|_| unique_time()).collect();
        assert!(times.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn any_name_makes_a_file_name() {
        assert_eq!(tidy("../node 7:0"), "_node 7_0");
        assert_eq!(tidy(" "), "worker");
        assert_eq!(tidy("trainer-0"), "trainer-0");
    }
}
