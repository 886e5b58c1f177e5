//! A window of a million scopes: the memory that it takes, and the time and memory to write it.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bench_harness::memory::{mib, peak_resident, resident};
use bench_harness::{Outcome, Table, row};
use profiler_runtime::report::{SortKey, TableOptions};
use profiler_runtime::{Profile, Trace};

use crate::work;

pub(crate) const SCOPES: u32 = 1_000_000;
/// A capacity above the number of scopes.
pub(crate) const CAPACITY: usize = 2_000_000;
/// The iterations of work between calls: about a microsecond per scope.
pub(crate) const TURNS: u64 = 1500;

pub(crate) fn measure() -> Outcome<[Table; 2]> {
    let dir = std::env::temp_dir().join(format!("profiler-bench-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let before = resident();
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
    let (window, title, exports) = seen.recv_timeout(Duration::from_secs(300))?;
    let memory = Table::of_values(
        title,
        [
            ("resident MiB before", before.map(mib)),
            ("with the window", window.map(mib)),
            ("at most, while it was written", peak_resident().map(mib)),
        ],
    );
    fs::remove_dir_all(dir)?;
    Ok([memory, exports])
}

/// Writes the window. Returns the resident memory before, and what the window is.
fn look(trace: &Trace, dir: &Path) -> Outcome<(Option<u64>, String, Table)> {
    let window = resident();
    let is_complete = trace.truncation().is_complete();
    let complete = if is_complete {
        "complete"
    } else {
        "NOT complete"
    };
    let title = format!("a window of {} scopes, {complete}", trace.len());
    let mut table = Table::new("writing it", "| ms | MiB .1 | bytes per scope .1");
    for name in ["trace.json", "trace.json.gz"] {
        let path = dir.join(name);
        let began = Instant::now();
        trace.export_chrome_trace(&path)?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let bytes = fs::metadata(path)?.len();
        row!(
            table,
            name,
            ms,
            mib(bytes),
            bytes as f64 / trace.len() as f64
        );
    }
    let began = Instant::now();
    let options = TableOptions::new().sort_by(SortKey::SelfCpuTimeTotal);
    std::hint::black_box(trace.key_averages().table(&options));
    row!(table, "key_averages", began.elapsed().as_secs_f64() * 1e3);
    Ok((window, title, table))
}
