//! PyTorch's tutorial "PyTorch Profiler With TensorBoard" (`tensorboard_profiler_tutorial.py`).
//!
//! The model learns to recognize drawn digits, on a GPU if there is one.
//!
//! ```text
//! cargo run --release --example tensorboard_profiler_tutorial
//! tensorboard --logdir=./log
//! ```

use std::time::Duration;

use profiler_examples::digits::Digits;
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::{Profile, Schedule, cuda, measured, tensorboard_trace_handler};

const BATCH: usize = 32;

#[measured]
fn next_batch(train_set: &Digits, step: usize) -> Digits {
    let numbers: Vec<usize> = (step * BATCH..(step + 1) * BATCH).collect();
    train_set.select(&numbers)
}

#[measured]
fn train(model: &mut dyn Model, data: Digits) -> Outcome {
    model.load(data)?;
    model.forward()?;
    model.backward()?;
    model.update(0.05)
}

fn main() -> Outcome {
    // 1. Prepare the data and model.
    let train_set = Digits::all().standardised();
    let mut model = model::create(Network::new(128, &mut Random::seeded(17)), BATCH)?;
    if let Some(stream) = model.stream() {
        cuda::set_current_stream(stream);
    }

    // 2. Use profiler to record execution events.
    let prof = Profile::builder()
        .schedule(Schedule::new().wait(1).warmup(1).active(3).repeat(2))
        .on_trace_ready(tensorboard_trace_handler("./log/digits"))
        .record_shapes(true)
        .with_stack(true)
        .start()?;
    for step in 0..(1 + 1 + 3) * 2 {
        let batch_data = next_batch(&train_set, step);
        train(&mut *model, batch_data)?;
        prof.step();
    }

    // 3. Run the profiler. The files are written on another thread.
    prof.stop();
    if !prof.wait(Duration::from_secs(10)) {
        return Err("the traces are not written yet".into());
    }
    println!("traces are in ./log/digits");
    Ok(())
}
