//! Publishes the numbers of each name through the facade `metrics`, to whichever exporter the program has installed.
//!
//! A program calls `publish` as often as its numbers are read, here once. Without the facade,
//! `summary().to_prometheus()` returns the same numbers, with histograms.
//!
//! ```text
//! cargo run --release --example metrics_facade
//! ```

use std::error::Error;

use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use profiler_examples::digits::Digits;
use profiler_runtime::{measure_execution_time, summary};

#[measure_execution_time(name = "standardise")]
fn standardise() -> Digits {
    Digits::all().standardised()
}

/// Sets the metrics of all names. The summary counts from the start of the program, and so do they.
fn publish() {
    for row in summary().rows {
        counter!("calls_total", "name" => row.name.clone()).absolute(row.calls);
        for (clock, times) in [("cpu", row.cpu), ("cuda", row.cuda)] {
            let Some(times) = times else { continue };
            let labels = [("name", row.name.clone()), ("clock", clock.to_owned())];
            gauge!("self_seconds", &labels).set(times.self_ns / 1e9);
            gauge!("p95_seconds", &labels).set(times.p95_ns / 1e9);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let exporter = PrometheusBuilder::new().install_recorder()?;
    for _ in 0..3 {
        standardise();
    }
    publish();
    print!("{}", exporter.render());
    Ok(())
}
