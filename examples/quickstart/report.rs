//! Prints the results and where to find more.

use std::error::Error;
use std::fs;
use std::time::Duration;

use profiler_runtime::report::Row;
use profiler_runtime::{Summary, TensorBoardLogger};

use crate::options::Options;

pub(crate) fn show(options: &Options, board: &TensorBoardLogger) -> Result<(), Box<dyn Error>> {
    // Loggers are called on another thread: wait until they have received everything.
    let flushed = profiler_runtime::flush(Duration::from_secs(5));
    let summary = profiler_runtime::summary();
    let file = options.summary_file();
    fs::write(&file, summary.to_json())
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;

    let page = options.page_file();
    summary.export_html(&page)?;

    println!("\n{summary:#}");
    name_slowest(&summary);
    if flushed.dropped + flushed.left > 0 {
        println!(
            "{} log entries were dropped and {} are late: the log is incomplete, the table is complete",
            flushed.dropped, flushed.left
        );
    }
    let logged = if summary.rows.is_empty() {
        "loss and accuracy are"
    } else {
        "every call is"
    };
    println!("{logged} in {}", board.path().display());
    println!("the table's numbers are in {}", file.display());
    println!("to see it all, open {} in a browser", page.display());
    if options.trace {
        let file = options.trace_file();
        println!(
            "every call is on the time line of {}, and in {} for https://ui.perfetto.dev",
            options.window_page_file().display(),
            file.display()
        );
    }
    println!(
        "to see them over time, run: tensorboard --logdir \"{}\"",
        options.log_dir().display()
    );
    Ok(())
}

/// Prints the function with the largest self time: a function that waits for the functions it calls
/// is not slow itself. On a GPU, uses GPU time, because launching overlaps the GPU's work.
fn name_slowest(summary: &Summary) {
    let on_gpu = summary.rows.iter().any(|row| row.cuda.is_some());
    let (kind, own): (_, fn(&Row) -> f64) = if on_gpu {
        ("GPU", |row| row.cuda.map_or(0.0, |cuda| cuda.self_ns))
    } else {
        ("measured", |row| row.cpu.map_or(0.0, |cpu| cpu.self_ns))
    };
    let measured: f64 = summary.rows.iter().map(own).sum();
    let slowest = summary.rows.iter().max_by(|a, b| own(a).total_cmp(&own(b)));
    if let Some(row) = slowest {
        println!(
            "slowest: {}, with {:.1} % of the {kind} time ({:.1} of {:.1} ms, in {} calls)",
            row.name,
            100.0 * own(row) / measured,
            own(row) / 1e6,
            measured / 1e6,
            row.calls
        );
    }
}
