//! Measures a call and a launch before, during and after windows with kernels, on the simulated CUPTI.
//!
//! The simulated driver and its CUPTI are not NVIDIA's: only the profiler's own part of the differences means anything
//! for a real device. The table shows whether anything is left after a window.

use std::time::{Duration, Instant};

use profiler_runtime::{Handle, Profile, cuda, flush, scope};

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
    Cost::of((0..BATCHES).map(|_| batch(&operation)).collect())
}

impl Cost {
    fn of(mut batches: Vec<f64>) -> Self {
        batches.sort_by(f64::total_cmp);
        Self {
            least: batches[0],
            median: batches[batches.len() / 2],
        }
    }
}

/// Returns the nanoseconds of an operation in one batch.
fn batch(operation: &dyn Fn()) -> f64 {
    let begin = Instant::now();
    (0..CALLS).for_each(|_| operation());
    let ns = begin.elapsed().as_nanos() as f64 / f64::from(CALLS);
    // The profiler's threads read what the batch has left.
    std::thread::sleep(Duration::from_millis(5));
    ns
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
    askers()
}

/// Measures what it costs to say for whom a launch is made, in a window with kernels, and prints the table. The batches of the
/// rows take turns, but for the hook's: it stays once it is installed.
fn askers() -> Outcome<()> {
    let asker = {
        let _scope = scope!("asks");
        Handle::current()
    };
    let gpu = Gpu::here();
    let in_handle = || {
        let _asker = asker.enter();
        gpu.launch();
    };
    let in_scope = || {
        let _asks = scope!("asks");
        gpu.launch();
    };
    let as_task = || {
        let _asks = scope!("asks");
        let asker = Handle::current();
        let _asker = asker.enter();
        gpu.launch();
    };
    let report = || {
        let now = Instant::now();
        asker.report_device_time("softmax", now, now);
    };
    let profile = Profile::builder().kernels(true).start()?;
    let launch = || gpu.launch();
    let rows: [(&str, &dyn Fn()); 6] = [
        ("launch", &launch),
        ("launch, handle entered around it", &in_handle),
        ("scope, launch", &in_scope),
        ("scope, its handle entered, launch", &as_task),
        ("`Instant::now()`", &|| {
            std::hint::black_box(Instant::now());
        }),
        ("the same, `report_device_time`", &report),
    ];
    let mut batches = rows.map(|_| Vec::new());
    for _ in 0..2 * BATCHES {
        for ((_, operation), batches) in rows.iter().zip(&mut batches) {
            batches.push(batch(operation));
        }
    }
    let id = asker.id();
    cuda::set_launch_hook(move |launch| launch.kernel().and(id));
    let hooked = (0..2 * BATCHES).map(|_| batch(&launch)).collect();
    profile.stop();
    println!("\n| in a window with kernels           | nanoseconds     |");
    println!("|------------------------------------|-----------------|");
    let rows = rows.into_iter().map(|(name, _)| name).zip(batches);
    for (name, batches) in rows.chain([("launch, with a launch hook", hooked)]) {
        let Cost { least, median } = Cost::of(batches);
        println!("| {name:<34} | {least:>7.0} {median:>7.0} |");
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
