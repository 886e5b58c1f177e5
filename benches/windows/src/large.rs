//! A window of a million scopes: the memory that it takes, and the time and memory to write it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bench_harness::memory::resident;
use profiler_runtime::report::{SortKey, TableOptions};
use profiler_runtime::{Profile, Trace};
use serde::Serialize;

use crate::work;

pub(crate) const SCOPES: u32 = 1_000_000;
/// A capacity above the number of scopes.
pub(crate) const CAPACITY: usize = 2_000_000;
/// The iterations of work between calls: about a microsecond per scope.
pub(crate) const TURNS: u64 = 1500;

#[derive(Serialize)]
pub(crate) struct Report {
    scopes: usize,
    complete: bool,
    /// The resident bytes before, with the window, and at most while it was written.
    resident_before: u64,
    resident_window: u64,
    resident_peak: u64,
    averages_ms: f64,
    exports: Vec<Export>,
}

#[derive(Serialize)]
pub(crate) struct Export {
    file: String,
    milliseconds: f64,
    bytes: u64,
}

struct Seen {
    scopes: usize,
    complete: bool,
    window: u64,
    averages_ms: f64,
    exports: Vec<Export>,
}

impl Report {
    pub(crate) fn measure() -> Result<Self, Box<dyn std::error::Error>> {
        let dir = std::env::temp_dir().join(format!("profiler-bench-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let before = resident().unwrap_or_default();
        let (sender, seen) = mpsc::channel();
        let into = dir.clone();
        let session = Profile::builder()
            .capacity(CAPACITY)
            .on_trace_ready(move |trace: &Trace| {
                let seen = look(trace, &into).map_err(|error| error.to_string())?;
                sender.send(seen).map_err(|error| error.to_string())
            })
            .start()?;
        work::scopes_apart(SCOPES.into(), TURNS);
        session.stop();
        let seen = seen.recv_timeout(Duration::from_secs(300))?;
        let report = Self {
            scopes: seen.scopes,
            complete: seen.complete,
            resident_before: before,
            resident_window: seen.window,
            resident_peak: peak(),
            averages_ms: seen.averages_ms,
            exports: seen.exports,
        };
        fs::remove_dir_all(dir)?;
        Ok(report)
    }
}

fn look(trace: &Trace, dir: &Path) -> Result<Seen, Box<dyn std::error::Error>> {
    let window = resident().unwrap_or_default();
    let export = |name: &str| -> Result<Export, Box<dyn std::error::Error>> {
        let path: PathBuf = dir.join(name);
        let began = Instant::now();
        trace.export_chrome_trace(&path)?;
        Ok(Export {
            file: name.to_owned(),
            milliseconds: began.elapsed().as_secs_f64() * 1e3,
            bytes: fs::metadata(path)?.len(),
        })
    };
    let exports = vec![export("trace.json")?, export("trace.json.gz")?];
    let began = Instant::now();
    let table = TableOptions::new().sort_by(SortKey::SelfCpuTimeTotal);
    std::hint::black_box(trace.key_averages().table(&table));
    Ok(Seen {
        scopes: trace.len(),
        complete: trace.truncation().is_complete(),
        window,
        averages_ms: began.elapsed().as_secs_f64() * 1e3,
        exports,
    })
}

/// Returns the largest number of resident bytes so far.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let complete = if self.complete {
            "complete"
        } else {
            "NOT complete"
        };
        writeln!(f, "a window of {} scopes, {complete}", self.scopes)?;
        writeln!(
            f,
            "  resident: {:.0} MiB before, {:.0} MiB with the window, {:.0} MiB at most while it was written",
            mib(self.resident_before),
            mib(self.resident_window),
            mib(self.resident_peak)
        )?;
        for export in &self.exports {
            writeln!(
                f,
                "  {:<14} {:8.0} ms  {:8.1} MiB  {:6.1} bytes per scope",
                export.file,
                export.milliseconds,
                mib(export.bytes),
                export.bytes as f64 / self.scopes as f64
            )?;
        }
        writeln!(f, "  key_averages   {:8.0} ms", self.averages_ms)
    }
}
