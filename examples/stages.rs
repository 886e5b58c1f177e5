//! Training and validation with separate schedules: each session counts the steps of its own stage,
//! in any order of the stages.
//!
//! ```text
//! cargo run --release --example stages [-- DIR]
//! ```

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use profiler_examples::digits::Digits;
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::session::ProfileError;
use profiler_runtime::{Profile, Schedule, Trace, cuda, measure_execution_time};

const EPOCHS: usize = 4;
const BATCH: usize = 64;

#[measure_execution_time(name = "train")]
fn train(model: &mut dyn Model, batch: Digits) -> Outcome {
    model.load(batch)?;
    model.forward()?;
    model.backward()?;
    model.update(0.05)
}

#[measure_execution_time(name = "validate")]
fn validate(model: &mut dyn Model, batch: Digits) -> Outcome<usize> {
    model.load(batch)?;
    model.forward()?;
    model.correct()
}

/// Starts a session for one stage, which counts only the steps of that stage.
fn session(stage: &'static str, schedule: Schedule, dir: &Path) -> Result<Profile, ProfileError> {
    let dir = dir.to_owned();
    let profile = Profile::builder()
        .schedule(schedule)
        .on_trace_ready(move |trace: &Trace| {
            let calls = trace.events().filter(|event| event.name() == stage).count();
            println!(
                "{stage}: window {} has {calls} calls of `{stage}`",
                trace.cycle()
            );
            trace.export_chrome_trace(dir.join(format!("{stage}_{}.json.gz", trace.step_num())))
        })
        .start()?;
    profile.add_metadata("stage", stage);
    Ok(profile)
}

fn batches(digits: &Digits) -> impl Iterator<Item = Digits> {
    (0..digits.len() / BATCH).map(|batch| {
        let numbers: Vec<usize> = (batch * BATCH..(batch + 1) * BATCH).collect();
        digits.select(&numbers)
    })
}

fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let dir = env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("profiles/stages"), PathBuf::from);
    fs::create_dir_all(&dir)?;
    let mut random = Random::seeded(17);
    let (images, test) = Digits::split(360, &mut random);
    let (images, test) = (images.standardised(), test.standardised());
    let mut model = model::create(Network::new(128, &mut random), BATCH)?;
    if let Some(stream) = model.stream() {
        cuda::set_current_stream(stream);
    }

    // Three windows of five training batches, and two windows of one validation batch.
    let training = session(
        "train",
        Schedule::new().wait(10).warmup(2).active(5).repeat(3),
        &dir,
    )?;
    let validation = session(
        "validate",
        Schedule::new().wait(2).warmup(1).active(1).repeat(2),
        &dir,
    )?;
    for epoch in 0..EPOCHS {
        for batch in batches(&images) {
            train(&mut *model, batch)?;
            training.step();
        }
        let mut correct = 0;
        for batch in batches(&test) {
            correct += validate(&mut *model, batch)?;
            validation.step();
        }
        let seen = test.len() / BATCH * BATCH;
        println!(
            "epoch {epoch}: {correct} of {seen} digits were recognized, on {}",
            model.device_name()
        );
    }
    for profile in [training, validation] {
        profile.stop();
        if !profile.wait(Duration::from_secs(10)) {
            println!("a window is not complete after ten seconds");
        }
    }
    println!("the traces are in {}", dir.display());
    Ok(())
}
