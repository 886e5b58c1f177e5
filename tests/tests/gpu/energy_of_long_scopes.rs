//! A scope that is longer than the time between samples has the energy of all intervals that it overlaps, against the
//! simulated truth on a real clock: a device draws 50 W, and 200 W more while a kernel runs on it.
//!
//! The energy of an interval is shared out by GPU self time, so an interval in which a device began or ended to work is
//! off by at most a quarter of the energy that the difference of the two powers makes in it. Nothing else is.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_runtime::report::{Row, SampledGpu};
use profiler_runtime::{Profile, Trace, scope, summary};
use profiler_tests::gpu::{Gpu, row, settle, started};

use crate::support::samples::{gpu, next_sample, sampled};

const IDLE_W: f64 = 50.0;
const BUSY_W: f64 = 200.0;
const INTERVAL: Duration = Duration::from_millis(100);
/// The step of the energy counter: an interval begins and ends with one.
const STEP_S: f64 = 0.1;
/// How well times after the last sample are known.
const BIN_S: f64 = 0.01;
/// A name with less GPU time has no joules.
const LEAST_S: f64 = 1.0;

/// Runs `work` in a window, from a sample to another.
fn in_a_window(device: &Gpu, stream: &CudaStream, work: impl FnOnce()) -> Arc<Trace> {
    {
        // From here on the profiler knows the driver, and NVML's devices have numbers in CUDA.
        let _scope = scope!("first", stream = stream);
        device.spin(stream, 1_000);
    }
    settle();
    let session = Profile::builder().gpu_samples(INTERVAL);
    let ((), trace) = session.run(|_| {
        next_sample(0);
        work();
        settle();
        // The counter moves once more.
        sleep(2 * INTERVAL);
        next_sample(0);
    });
    trace.expect("a window")
}

/// Returns the longest interval of a device in seconds.
fn longest_interval(trace: &Trace) -> f64 {
    let mut longest = 0;
    for (_, samples) in trace.gpu_samples() {
        let gaps = samples
            .windows(2)
            .map(|pair| pair[1].unix_ns - pair[0].unix_ns);
        longest = gaps.chain([longest]).max().unwrap_or(0);
    }
    longest as f64 / 1e9 + STEP_S
}

/// Asserts that a row has the energy of the kernels in it and of the idle device around them, with an error for each
/// of its `ends`: changes between its own time and that of other scopes, or of an idle device.
#[track_caller]
fn used(row: &Row, kernels_s: f64, ends: u32, longest: f64) {
    let energy = row.energy.expect("it ran on a sampled device");
    let self_s = row.cuda.expect("GPU times").self_ns / 1e9;
    assert!(self_s >= LEAST_S, "{}: {self_s} s", row.name);
    let expected = IDLE_W * self_s + BUSY_W * kernels_s;
    let joules = energy.joules.unwrap_or(f64::NAN);
    let bound = f64::from(ends) * (BUSY_W * longest / 4.0 + (IDLE_W + BUSY_W) * BIN_S);
    println!(
        "{}: {joules:.1} J of {expected:.1} J, bound {bound:.1} J",
        row.name
    );
    assert!(
        (joules - expected).abs() <= bound,
        "{}: {joules} J, not {expected} J within {bound} J",
        row.name
    );
    let attributed = energy.gpu_self_ns / 1e9;
    assert!(
        (attributed - self_s).abs() <= 2.0 * BIN_S,
        "{}: {attributed} s of {self_s} s",
        row.name
    );
}

fn milliseconds(ms: u64) -> u64 {
    ms * 1_000_000
}

#[test(on = sampled().script("clock real"))]
fn scopes_of_a_tenth_of_an_interval_to_twenty_have_their_energy() {
    let (_profiler, device, stream) = started();
    let phases = [
        ("tenth", 10, 110),
        ("one", 100, 11),
        ("five", 500, 3),
        ("twenty", 2_000, 1),
    ];
    let trace = in_a_window(&device, &stream, || {
        for (name, ms, calls) in phases {
            for _ in 0..calls {
                let _scope = scope!(name, stream = &stream);
                device.spin(&stream, milliseconds(ms));
            }
            stream.synchronize().expect("nothing failed");
            sleep(INTERVAL);
        }
    });
    let longest = longest_interval(&trace);
    let averages = trace.key_averages();
    for (name, ms, calls) in phases {
        let kernels_s = (ms * calls) as f64 / 1e3;
        used(&row(name), kernels_s, 2, longest);
        used(averages.row(name).expect("it ran"), kernels_s, 2, longest);
    }
}

#[test(on = sampled().script("clock real"))]
fn a_summary_while_a_long_scope_is_open_has_its_energy_in_no_scope() {
    let (_profiler, device, stream) = started();
    let in_scopes = |gpu: &SampledGpu| Some(gpu.energy_j? - gpu.unmeasured_j?);
    let trace = in_a_window(&device, &stream, || {
        // A scope that waits for a processor between its events takes longer than its kernel.
        let before = in_scopes(&gpu(0)).unwrap_or(0.0);
        let long = scope!("long", stream = &stream);
        device.spin(&stream, milliseconds(2_000));
        sleep(Duration::from_millis(600));
        let open = summary();
        let gpu = &open.gpus[0];
        assert!(
            gpu.energy_j > Some(0.0)
                && in_scopes(gpu).is_some_and(|joules| (joules - before).abs() < 0.1),
            "{gpu:?}, {before} J before"
        );
        assert_eq!(row("long").energy, None);
        // A window inside has the energy of its time, and not of the scope.
        let session = Profile::builder().gpu_samples(INTERVAL);
        let ((), window) = session.run(|_| sleep(Duration::from_millis(500)));
        stream.synchronize().expect("nothing failed");
        drop(long);
        settle();
        let window = window.expect("a window");
        let gpu = &window.key_averages().gpus[0];
        let (all, unmeasured) = (gpu.energy_j.unwrap_or(0.0), gpu.unmeasured_j);
        // A late sample may find one step of the counter more than its interval is long.
        let seconds = window.duration().as_secs_f64() + STEP_S;
        assert!(all <= (IDLE_W + BUSY_W) * seconds, "{gpu:?} in {seconds} s");
        assert!(
            unmeasured.is_some_and(|joules| (joules - all).abs() < 0.1),
            "{gpu:?}"
        );
    });
    used(&row("long"), 2.0, 2, longest_interval(&trace));
    let gpu = gpu(0);
    let shared = row("long")
        .energy
        .and_then(|energy| energy.joules)
        .unwrap_or(0.0);
    let all = gpu.energy_j.unwrap_or(f64::NAN);
    let sum = shared + gpu.unmeasured_j.unwrap_or(f64::NAN);
    // `first` has the rest.
    assert!((sum - all).abs() < 0.1, "{sum}, not {all}");
}
