//! Shows which kernels the slowest function of a small network runs, and what limits it.
//!
//! Trains a few batches in a session. Where NVIDIA's library CUPTI is found, the session records
//! each kernel and copy with the function that launched it: here for the function that kept the
//! device waiting or working for the longest time. Without CUPTI, and without a GPU, the program
//! says so.
//!
//! ```text
//! cargo run --release --example kernels_inside
//! ```

use profiler_examples::digits::Digits;
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::report::{Kernels, ScopeKernels, Verdict};
use profiler_runtime::{Activity, Profile, cuda, measured};

const BATCH: usize = 128;
const BATCHES: usize = 8;

#[measured(name = "load")]
fn load(model: &mut dyn Model, batch: Digits) -> Outcome {
    model.load(batch)
}

#[measured(name = "forward")]
fn forward(model: &mut dyn Model) -> Outcome {
    model.forward()
}

#[measured(name = "backward")]
fn backward(model: &mut dyn Model) -> Outcome {
    model.backward()
}

#[measured(name = "update")]
fn update(model: &mut dyn Model) -> Outcome {
    model.update(0.05)
}

/// Returns the mean loss.
fn train(model: &mut dyn Model, digits: &Digits) -> Outcome<f64> {
    for batch in 0..BATCHES {
        let numbers: Vec<usize> = (batch * BATCH..(batch + 1) * BATCH).collect();
        load(model, digits.select(&numbers))?;
        forward(model)?;
        backward(model)?;
        update(model)?;
    }
    // Reading the loss waits for the device, so the window has all kernels.
    Ok(model.take_loss()? / BATCHES as f64)
}

/// Returns the function that the device spent the longest time on: working, or waiting for it.
fn slowest(kernels: &Kernels) -> Option<&ScopeKernels> {
    let functions = kernels.scopes.iter().filter(|scope| scope.scope.is_some());
    let time = |scope: &ScopeKernels| scope.busy_ns + scope.idle_ns.unwrap_or(0.0);
    functions.max_by(|one, other| time(one).total_cmp(&time(other)))
}

fn explain(function: &ScopeKernels) {
    let name = function.scope.as_deref().unwrap_or_default();
    let idle_ns = function.idle_ns.unwrap_or(0.0);
    let (busy, idle) = (function.busy_ns / 1e3, idle_ns / 1e3);
    let why = match function.verdict() {
        Some(Verdict::LaunchBound) => "the device waits for launches: launch less, or a CUDA graph",
        Some(Verdict::GapBound) => "the device waits for something else than launches",
        Some(Verdict::CopyBound) => "the device copies for most of the time",
        _ => "the device computes for most of the time: faster kernels help",
    };
    println!(
        "the slowest function is `{name}`: the device worked for {busy:.0} µs and waited for {idle:.0} µs;"
    );
    println!("{why}\n");
}

fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let digits = Digits::all().standardised();
    let network = Network::new(128, &mut Random::seeded(17));
    let mut model = model::create(network, BATCH)?;
    if let Some(stream) = model.stream() {
        cuda::set_current_stream(stream);
    }
    // The first launches of a program load its kernels.
    train(&mut *model, &digits)?;
    let (loss, trace) = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .run(|_| train(&mut *model, &digits));
    println!("the mean loss is {:.3} on {}", loss?, model.device_name());
    let averages = trace?.key_averages();
    let kernels = averages.kernels();
    let Some(function) = slowest(&kernels) else {
        print!("{kernels}\n{averages}");
        return Ok(());
    };
    explain(function);
    let name = function.scope.as_deref().unwrap_or_default();
    print!("{}", averages.restrict(format!("^{name}$"))?.kernels());
    Ok(())
}
