//! Measures a call and a launch before, during and after windows with kernels, on the simulated CUPTI.
//!
//! The simulated driver and its CUPTI are not NVIDIA's: only the profiler's own part of the differences means anything
//! for a real device. The table shows whether anything is left after a window.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bench_harness::{Outcome, Samples, Table, row};
use profiler_runtime::{Handle, Profile, cuda, flush, scope};

use crate::device::Gpu;

/// Few enough for the launch queue, the rings and the buffers of a window.
const CALLS: u32 = 500;
const BATCHES: usize = 40;

/// Returns the nanoseconds of an operation in one batch.
fn batch(operation: &dyn Fn()) -> f64 {
    let begin = Instant::now();
    (0..CALLS).for_each(|_| operation());
    let ns = begin.elapsed().as_nanos() as f64 / f64::from(CALLS);
    // The profiler's threads read what the batch has left.
    std::thread::sleep(Duration::from_millis(5));
    ns
}

fn launch() {
    Gpu::here().launch();
}

fn call_with_a_launch() {
    let _call = scope!("call with a launch", stream = &Gpu::here().stream);
    launch();
}

/// Adds a row: scopes that name no stream are measured on the legacy default one, as in the other tables.
fn phase(table: &mut Table, name: &str) {
    let call = || {
        let _call = scope!("call");
        black_box(());
    };
    let [launch, call, both] = [&launch as &dyn Fn(), &call, &call_with_a_launch]
        .map(|operation| Samples((0..BATCHES).map(|_| batch(operation)).collect()).spread());
    row!(
        table,
        name,
        launch.min,
        launch.median,
        call.min,
        call.median,
        both.min,
        both.median,
    );
}

/// Measures in this process.
pub(crate) fn measure() -> Outcome<Vec<Table>> {
    let mut table = Table::new(
        format!(
            "ns on the simulated driver and its CUPTI: minimum and median of {BATCHES} batches"
        ),
        "phase | launch | median | call | median | call with launch | median",
    );
    // The first calls are slower: the profiler looks for the driver, and pools and rings are made.
    for _ in 0..BATCHES {
        batch(&call_with_a_launch);
    }
    phase(&mut table, "before any window");
    for (name, kernels) in [
        ("a window without kernels", false),
        ("a window with kernels", true),
        ("the second one", true),
    ] {
        window(&mut table, name, kernels)?;
        phase(&mut table, "after it");
    }
    Ok(vec![table, askers()?])
}

/// Measures what it costs to say for whom a launch is made, in a window with kernels. The batches of the rows take turns, but
/// for the hook's: it stays once it is installed.
fn askers() -> Outcome<Table> {
    let asker = {
        let _scope = scope!("asks");
        Handle::current()
    };
    let in_handle = || {
        let _asker = asker.enter();
        launch();
    };
    let in_scope = || {
        let _asks = scope!("asks");
        launch();
    };
    let as_task = || {
        let _asks = scope!("asks");
        let asker = Handle::current();
        let _asker = asker.enter();
        launch();
    };
    let clock = || {
        black_box(Instant::now());
    };
    let report = || {
        let now = Instant::now();
        asker.report_device_time("softmax", now, now);
    };
    let profile = Profile::builder().kernels(true).start()?;
    let rows: [(&str, &dyn Fn()); 6] = [
        ("launch", &launch),
        ("launch, handle entered around it", &in_handle),
        ("scope, launch", &in_scope),
        ("scope, its handle entered, launch", &as_task),
        ("`Instant::now()`", &clock),
        ("the same, `report_device_time`", &report),
    ];
    let mut batches = rows.map(|(name, _)| (name, Vec::new()));
    for _ in 0..2 * BATCHES {
        for ((_, operation), (_, batches)) in rows.iter().zip(&mut batches) {
            batches.push(batch(operation));
        }
    }
    let id = asker.id();
    cuda::set_launch_hook(move |launch| launch.kernel().and(id));
    let hooked = (0..2 * BATCHES).map(|_| batch(&launch)).collect();
    profile.stop();
    let columns = "in a window with kernels | ns | median";
    let mut table = Table::new("for whom a launch is made", columns);
    let hooked = [("launch, with a launch hook", hooked)];
    for (name, batches) in batches.into_iter().chain(hooked) {
        let spread = Samples(batches).spread();
        row!(table, name, spread.min, spread.median);
    }
    Ok(table)
}

fn window(table: &mut Table, name: &str, kernels: bool) -> Outcome<()> {
    let profile = Profile::builder().kernels(kernels).start()?;
    phase(table, name);
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
            row!(table, format!("  {count} {reason}"));
        }
    }
    flush(Duration::from_secs(10));
    Ok(())
}
