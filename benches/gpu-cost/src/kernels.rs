//! Measures a call and a launch before, during and after windows with kernels, on the simulated CUPTI.
//!
//! The simulated driver and its CUPTI are not NVIDIA's: only the profiler's own part of the differences means anything
//! for a real device. The table shows whether anything is left after a window.

use std::time::{Duration, Instant};

use profiler_runtime::{Profile, flush, scope};

use crate::gpu::Gpu;
use crate::process::Outcome;

/// Few enough for the launch queue, the rings and the buffers of a window.
const CALLS: u32 = 500;
const BATCHES: usize = 40;

/// The nanoseconds of one operation: the minimum and the median over all batches.
struct Cost {
    least: f64,
    median: f64,
}

fn cost(operation: impl Fn()) -> Cost {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begin = Instant::now();
            (0..CALLS).for_each(|_| operation());
            let ns = begin.elapsed().as_nanos() as f64 / f64::from(CALLS);
            // The profiler's threads read what the batch has left.
            std::thread::sleep(Duration::from_millis(5));
            ns
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    Cost {
        least: batches[0],
        median: batches[BATCHES / 2],
    }
}

/// Measures and prints a row. Scopes that name no stream are measured on the legacy default one, as in the other tables.
fn row(phase: &str) {
    let gpu = Gpu::here();
    let launch = cost(|| gpu.launch());
    let call = cost(|| {
        let _call = scope!("call");
        std::hint::black_box(());
    });
    let both = cost(|| {
        let _call = scope!("call with a launch", stream = &gpu.stream);
        gpu.launch();
    });
    print!("| {phase:<34} |");
    for Cost { least, median } in [launch, call, both] {
        print!(" {least:>7.0} {median:>7.0} |");
    }
    println!();
}

/// Measures in this process, and prints the table.
pub(crate) fn measure() -> Outcome<()> {
    let _profiler = profiler_runtime::init()?;
    Gpu::get()?;
    // The first calls are slower: the profiler looks for the driver, and pools and rings are made.
    cost(|| {
        let _call = scope!("call with a launch", stream = &Gpu::here().stream);
        Gpu::here().launch();
    });
    println!(
        "On the simulated driver and its CUPTI. Nanoseconds: minimum and median of {BATCHES} batches.\n"
    );
    println!(
        "| phase                              | launch          | call            | call with launch |"
    );
    println!(
        "|------------------------------------|-----------------|-----------------|-----------------|"
    );
    row("before any window");
    window("a window without kernels", false)?;
    row("after it");
    for name in ["a window with kernels", "the second one"] {
        window(name, true)?;
        row("after it");
    }
    Ok(())
}

fn window(name: &str, kernels: bool) -> Outcome<()> {
    let profile = Profile::builder().kernels(kernels).start()?;
    row(name);
    profile.stop();
    if !profile.wait(Duration::from_secs(60)) {
        return Err("the window was not delivered".into());
    }
    let trace = profile.trace().ok_or("no window")?;
    if trace.has_kernels() != kernels {
        let reason = trace.no_kernels_reason().unwrap_or("no reason");
        return Err(format!("{name}: {reason}").into());
    }
    for (count, reason) in trace.lost_work().counted() {
        if count > 0 {
            println!("  {count} {reason}");
        }
    }
    flush(Duration::from_secs(10));
    Ok(())
}
