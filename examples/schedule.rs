//! The second program of torch.profiler's tutorial, line by line: windows of a longer run.
//!
//! ```python
//! def trace_handler(p):
//!     print(p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
//!     p.export_chrome_trace("trace_" + str(p.step_num) + ".json")
//!
//! with profile(
//!     activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
//!     schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
//!     on_trace_ready=trace_handler,
//! ) as p:
//!     for idx in range(8):
//!         model(inputs)
//!         p.step()
//! ```
//!
//! A second handler writes the files of `torch.profiler.tensorboard_trace_handler("./log")`, which
//! `TensorBoard`'s trace plugin reads: a session can have several handlers. HTA reads the files of
//! the first one. The model learns to recognize drawn digits, on a GPU if there is one.
//!
//! ```text
//! cargo run --release --example schedule [-- DIR]
//! ```

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use profiler_examples::digits::Digits;
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::report::{SortKey, TableOptions};
use profiler_runtime::{
    Activity, Profile, Schedule, Trace, cuda, measure_execution_time, tensorboard_trace_handler,
};

const BATCH: usize = 128;

#[measure_execution_time(name = "forward")]
fn forward(model: &mut dyn Model) -> Outcome {
    model.forward()
}

#[measure_execution_time(name = "backward")]
fn backward(model: &mut dyn Model) -> Outcome {
    model.backward()
}

#[measure_execution_time(name = "update")]
fn update(model: &mut dyn Model) -> Outcome {
    model.update(0.05)
}

#[measure_execution_time(name = "train_batch")]
fn train_batch(model: &mut dyn Model, batch: Digits) -> Outcome {
    model.load(batch)?;
    forward(model)?;
    backward(model)?;
    update(model)
}

fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let dir = env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("profiles/schedule"), PathBuf::from);
    fs::create_dir_all(&dir)?;
    let digits = Digits::all().standardised();
    let network = Network::new(128, &mut Random::seeded(17));
    let mut model = model::create(network, BATCH)?;
    if let Some(stream) = model.stream() {
        cuda::set_current_stream(stream);
    }

    let folder = dir.clone();
    let trace_handler = move |p: &Trace| {
        let ten = TableOptions::new()
            .sort_by(SortKey::SelfCudaTimeTotal)
            .row_limit(10);
        println!("{}", p.key_averages().table(&ten));
        p.export_chrome_trace(folder.join(format!("trace_{}.json", p.step_num())))
    };
    let p = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .schedule(Schedule::new().wait(1).warmup(1).active(2).repeat(1))
        .on_trace_ready(trace_handler)
        .on_trace_ready(tensorboard_trace_handler(dir.join("log")))
        .start()?;
    for idx in 0..8 {
        let numbers: Vec<usize> = (idx * BATCH..(idx + 1) * BATCH).collect();
        train_batch(&mut *model, digits.select(&numbers))?;
        p.step();
    }
    p.stop();

    // Handlers run on another thread, so the loop did not wait for them.
    if !p.wait(Duration::from_secs(10)) {
        println!("the window is not complete after ten seconds");
    }
    println!(
        "the mean loss is {:.3} on {}",
        model.take_loss()? / 8.0,
        model.device_name()
    );
    println!("the traces are in {}", dir.display());
    println!(
        "for TensorBoard's trace plugin, run: tensorboard --logdir \"{}\"",
        dir.join("log").display()
    );
    Ok(())
}
