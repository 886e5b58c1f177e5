//! Sends every measurement to a logger that the program defines, or to a closure.
//!
//! A logger takes a tag, milliseconds and a step. It is called on a thread of the profiler, so it
//! may be slow. If it fails or panics, the profiler counts that, and the program continues.
//!
//! ```text
//! cargo run --release --example own_logger
//! ```

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use profiler_examples::digits::Digits;
use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure_execution_time, summary};

/// Writes one line for each call: `tag,step,milliseconds`.
struct CsvLogger {
    file: Mutex<BufWriter<File>>,
}

impl CsvLogger {
    fn new(path: &Path) -> Result<Self, LogError> {
        let mut file = File::create(path)
            .map(BufWriter::new)
            .map_err(|error| LogError::io(path, error))?;
        writeln!(file, "tag,step,milliseconds").map_err(|error| LogError::io(path, error))?;
        Ok(Self {
            file: Mutex::new(file),
        })
    }
}

impl ScalarLogger for CsvLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        let mut file = self.file.lock().map_err(LogError::other)?;
        writeln!(file, "{tag},{step},{value:.6}").map_err(LogError::other)
    }

    // Called at least once per second and at the end, so the logger may buffer.
    fn flush(&self) -> Result<(), LogError> {
        let mut file = self.file.lock().map_err(LogError::other)?;
        file.flush().map_err(LogError::other)
    }
}

struct Batches {
    digits: Digits,
    csv: Arc<CsvLogger>,
}

impl Batches {
    // The expression is evaluated at each call, and may use `self` and the parameters. An `Arc` or
    // a `&'static` logger needs no allocation.
    #[measure_execution_time(log = self.csv.clone())]
    fn of(&self, size: usize) -> Digits {
        let numbers: Vec<usize> = (0..size).collect();
        self.digits.select(&numbers)
    }
}

static SLOW_CALLS: AtomicU64 = AtomicU64::new(0);

// A closure is a logger, too. This one counts calls that exceed a time budget.
#[measure_execution_time(log = |_tag, milliseconds, _step| {
    if milliseconds > 0.05 {
        SLOW_CALLS.fetch_add(1, Ordering::Relaxed);
    }
})]
fn standardise(digits: &Digits) -> Digits {
    digits.standardised()
}

// A closure may fail. The program continues, and the table shows how many entries were lost.
#[measure_execution_time(log = |_tag, _milliseconds, _step| Err("the metrics server is gone"))]
fn strongest(digits: &Digits) -> f32 {
    digits.images().iter().copied().fold(0.0, f32::max)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new("profiles/own_logger.csv");
    fs::create_dir_all("profiles").map_err(|error| LogError::io("profiles", error))?;
    let batches = Batches {
        digits: Digits::all(),
        csv: Arc::new(CsvLogger::new(path)?),
    };

    let mut strongest_of_all = 0.0_f32;
    for step in 0..100 {
        let batch = batches.of(17 * step);
        strongest_of_all = strongest_of_all.max(strongest(&standardise(&batch)));
    }
    println!("the strongest pixel of all batches: {strongest_of_all:.2} deviations");

    // Loggers run asynchronously: wait until they have received everything, but not forever.
    let report = profiler_runtime::flush(Duration::from_secs(5));
    println!(
        "{} entries delivered, {} dropped",
        report.delivered, report.dropped
    );
    println!(
        "{} calls of `standardise` over 50 µs",
        SLOW_CALLS.load(Ordering::Relaxed)
    );
    // The program owns the logger, so it can log other values too.
    batches
        .csv
        .add_scalar("strongest pixel", f64::from(strongest_of_all), 0)?;
    batches.csv.flush()?;
    println!("{} begins with:", path.display());
    for line in fs::read_to_string(path)?.lines().take(4) {
        println!("    {line}");
    }
    println!("\n{}", summary());
    Ok(())
}
