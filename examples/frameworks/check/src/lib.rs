//! Runs a program on the simulated driver, and says at which functions its device time stands.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use profiler_report::Timeline;
use profiler_runtime_cli::input::{Input, Limits};
use profiler_simulated_driver::{ActivityKind, Installation, Report};
use tempfile::TempDir;

/// A program that is about to run on the simulated driver, which records its whole run with kernels.
///
/// It fails if the profiler waits for a device, and its environment has no settings of the profiler but these.
#[derive(Debug)]
pub struct Program {
    /// The program. Arguments and variables may be added.
    pub command: Command,
    folder: TempDir,
}

impl Program {
    /// Prepares a program at a path, with a script for the driver: `kernel NAME TIME; default-kernel TIME`.
    ///
    /// # Panics
    ///
    /// Panics if the driver cannot be installed.
    pub fn new(path: &str, script: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let driver = Installation::new(&folder.path().join("driver"))
            .create()
            .expect("the driver is installed");
        let report = folder.path().join("report.json");
        let script = format!(
            "synchronise abort-from profiler_runtime::; report-at-exit {}\n{script}",
            report.display()
        );
        let mut command = driver.command(path, &script);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PROFILER_") {
                command.env_remove(name);
            }
        }
        command
            .env("PROFILER_CUPTI_LIBRARY", driver.library())
            .env("PROFILER_TRACE", folder.path().join("trace.json"));
        Self { command, folder }
    }

    /// Has the profiler find no CUPTI, so that GPU times are those of events alone.
    #[must_use]
    pub fn without_cupti(mut self) -> Self {
        self.command.env("PROFILER_KERNELS", "0");
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    ///
    /// Panics if the program fails, with its output.
    pub fn run(mut self) -> Ran {
        let output = self.command.output().expect("the program starts");
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(
            output.status.success(),
            "{}\n{stdout}\n{stderr}",
            output.status
        );
        let path = self.folder.path();
        Ran {
            timeline: trace(&path.join("trace.json")),
            report: Report::read(&path.join("report.json")).expect("the driver's report"),
            stdout,
            stderr,
        }
    }
}

/// Reads a trace that a program has left.
///
/// # Panics
///
/// Panics if there is none.
pub fn trace(path: &Path) -> Timeline {
    let file = File::open(path).expect("the program wrote a trace");
    match Input::from_reader(file, "trace", Limits::DEFAULT).expect("a trace") {
        Input::Timeline(timeline) => *timeline,
        other => panic!("no trace: {other:?}"),
    }
}

/// What a program has left.
#[derive(Debug)]
pub struct Ran {
    /// The whole run.
    pub timeline: Timeline,
    /// What the driver did.
    pub report: Report,
    /// What the program printed.
    pub stdout: String,
    /// What the program printed as errors, with the profiler's warnings.
    pub stderr: String,
}

impl Ran {
    /// Returns how long kernels, copies and fills of each function ran, in nanoseconds. The empty name has those that no
    /// measured function launched.
    pub fn device_ns(&self) -> BTreeMap<String, f64> {
        let kernels = self.timeline.key_averages().kernels();
        let mut all = BTreeMap::new();
        for scope in kernels.scopes {
            let ns: f64 = scope.rows.iter().map(|row| row.times.total_ns).sum();
            *all.entry(scope.scope.unwrap_or_default()).or_default() += ns;
        }
        all
    }

    /// Returns how much of the work that the simulated device has done stands at these functions, by its time, from 0 to 1.
    pub fn share_of(&self, functions: &[&str]) -> f64 {
        let all = self.device_ns();
        let theirs: f64 = functions.iter().filter_map(|name| all.get(*name)).sum();
        theirs / self.truth_ns()
    }

    /// Returns how long the device has worked, by its own account, in nanoseconds.
    pub fn truth_ns(&self) -> f64 {
        let is_work = |kind| {
            matches!(
                kind,
                ActivityKind::Kernel | ActivityKind::Copy | ActivityKind::Fill
            )
        };
        let work = self
            .report
            .activities
            .iter()
            .filter(|done| is_work(done.kind));
        work.map(|done| (done.end - done.start) as f64).sum()
    }
}
