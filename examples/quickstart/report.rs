//! What was measured, and where to see more of it.

use std::error::Error;
use std::fs;
use std::time::Duration;

use profiler_runtime::{Summary, TensorBoardLogger};

use crate::options::Options;

pub(crate) fn show(options: &Options, board: &TensorBoardLogger) -> Result<(), Box<dyn Error>> {
    // Loggers are called off the measured thread: wait until they have everything.
    let flushed = profiler_runtime::flush(Duration::from_secs(5));
    let summary = profiler_runtime::summary();
    let file = options.summary_file();
    fs::write(&file, summary.to_json())
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;

    println!("\n{summary}");
    name_slowest(&summary);
    if flushed.dropped + flushed.left > 0 {
        println!(
            "{} log entries were dropped and {} are late: the log has gaps, the table has none",
            flushed.dropped, flushed.left
        );
    }
    let logged = if summary.rows.is_empty() {
        "loss and accuracy are"
    } else {
        "every single call is"
    };
    println!("{logged} in {}", board.path().display());
    println!("the table's numbers are in {}", file.display());
    println!(
        "to see them over time, run: tensorboard --logdir \"{}\"",
        options.log_dir().display()
    );
    Ok(())
}

/// By self time: a function that only waits for those it calls is not slow itself.
fn name_slowest(summary: &Summary) {
    let measured: f64 = summary.rows.iter().map(|row| row.self_ns).sum();
    let slowest = summary
        .rows
        .iter()
        .max_by(|a, b| a.self_ns.total_cmp(&b.self_ns));
    if let Some(row) = slowest {
        println!(
            "slowest: {}, with {:.1} % of the measured time ({:.1} of {:.1} ms, in {} calls)",
            row.name,
            100.0 * row.self_ns / measured,
            row.self_ns / 1e6,
            measured / 1e6,
            row.calls
        );
    }
}
