//! Annotates a training loop and shows where its time goes. Start here.
//!
//! A small network learns to read digits. One attribute each measures loading a batch,
//! the forward pass, the backward pass and the update; the context form measures a whole epoch. At
//! the end, the program prints a table and writes a log that shows the duration of every call in
//! `TensorBoard`.
//!
//! If there is a GPU, the network learns on it, and the table shows how long the GPU worked next to
//! how long the CPU took to launch. If there is none, a line below the table says why.
//!
//! ```text
//! cargo run --release --example quickstart [-- --out DIR] [--trace]
//! ```
//!
//! With `--trace`, the program also writes every call to a trace, whose steps are epochs.
//!
//! Then try it with `PROFILER_ENABLED=0` before the command, or with `--features strip` after it.

#[path = "quickstart/options.rs"]
mod options;
#[path = "quickstart/report.rs"]
mod report;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use profiler_examples::digits::{Digits, PIXELS, SIDE};
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::log::trace_handler;
use profiler_runtime::{
    Profile, Schedule, TensorBoardLogger, Trace, cuda, measure_execution_time,
    measure_execution_time_context, tensorboard_trace_handler,
};

use crate::options::Options;

const EPOCHS: u64 = 30;
const BATCH: usize = 32;
const HIDDEN: usize = 128;
const HELD_OUT: usize = 360;
const RATE: f32 = 0.05;

struct Trainer {
    model: Box<dyn Model>,
    images: Digits,
    /// The indices of the images that this epoch has not used yet.
    unseen: Vec<usize>,
    random: Random,
    board: Arc<TensorBoardLogger>,
}

impl Trainer {
    // One attribute measures a function. With `log`, every call is also logged, under this
    // function's own step counter. The expression may use `self` and the parameters.
    #[measure_execution_time(log = self.board.clone())]
    fn load_batch(&mut self) -> Outcome {
        let rest = self.unseen.len().saturating_sub(BATCH);
        let numbers = self.unseen.split_off(rest);
        let mut batch = self.images.select(&numbers);
        for image in batch.images_mut().chunks_exact_mut(PIXELS) {
            shift(image, &mut self.random);
        }
        scale(batch.images_mut());
        self.model.load(batch)
    }

    // On a GPU, these functions return once their work is launched. Its GPU time is measured on the
    // thread's current stream, which `run` sets; `stream = …` selects another one.
    #[measure_execution_time(log = self.board.clone())]
    fn forward(&mut self) -> Outcome {
        self.model.forward()
    }

    #[measure_execution_time(log = self.board.clone())]
    fn backward(&mut self) -> Outcome {
        self.model.backward()
    }

    #[measure_execution_time(log = self.board.clone())]
    fn update(&mut self) -> Outcome {
        self.model.update(RATE)
    }

    // Logged at the epoch instead of the function's own step counter.
    #[measure_execution_time(log = self.board.clone(), global_step = epoch)]
    fn evaluate(&mut self, test: &Digits, epoch: u64) -> Outcome<f64> {
        self.model.load(test.clone())?;
        self.model.forward()?;
        let accuracy = self.model.correct()? as f64 / test.len() as f64;
        // The program owns the logger, so it can log other values too.
        self.board.add_scalar("test/accuracy", accuracy, epoch)?;
        Ok(accuracy)
    }

    /// Trains on every image once. Returns the mean loss.
    fn train_epoch(&mut self) -> Outcome<f64> {
        self.unseen = (0..self.images.len()).collect();
        self.random.shuffle(&mut self.unseen);
        let mut batches = 0.0;
        while !self.unseen.is_empty() {
            self.load_batch()?;
            self.forward()?;
            self.backward()?;
            self.update()?;
            batches += 1.0;
        }
        Ok(self.model.take_loss()? / batches)
    }
}

/// Scales pixels from 0 to 16 to the range from -1 to 1.
fn scale(images: &mut [f32]) {
    for pixel in images {
        *pixel = *pixel / 8.0 - 1.0;
    }
}

/// Shifts an image sideways by at most one pixel, so that the network sees more variants.
fn shift(image: &mut [f32], random: &mut Random) {
    let (from, to, blank) = match random.below(3) {
        0 => (0..SIDE - 1, 1, 0),
        1 => (1..SIDE, 0, SIDE - 1),
        _ => return,
    };
    for row in image.chunks_exact_mut(SIDE) {
        row.copy_within(from.clone(), to);
        row[blank] = 0.0;
    }
}

/// Records one window from the first epoch to the last, for four readers and as a page.
fn record(options: &Options, run: &Path, board: &Arc<TensorBoardLogger>) -> Outcome<Profile> {
    let (file, page) = (options.trace_file(), options.window_page_file());
    let small = file.with_extension("pftrace");
    let profile = Profile::builder()
        .schedule(Schedule::new().active(EPOCHS).repeat(1))
        .on_trace_ready(move |trace: &Trace| trace.export_chrome_trace(&file))
        .on_trace_ready(move |trace: &Trace| trace.export_perfetto(&small))
        .on_trace_ready(move |trace: &Trace| trace.export_html(&page))
        .on_trace_ready(tensorboard_trace_handler(run))
        .on_trace_ready(trace_handler(board))
        .start()?;
    Ok(profile)
}

fn run(options: &Options) -> Outcome {
    // Flushes the logs when it is dropped, even if the program returns early.
    let _profiler = profiler_runtime::init()?;
    let run = options.new_run()?;
    let board = Arc::new(TensorBoardLogger::new(&run)?);
    let profile = if options.trace {
        Some(record(options, &run, &board)?)
    } else {
        None
    };

    let mut random = Random::seeded(17);
    let (images, mut test) = Digits::split(HELD_OUT, &mut random);
    scale(test.images_mut());
    let network = Network::new(HIDDEN, &mut random);
    let model = model::create(network, BATCH.max(test.len()))?;
    if let Some(stream) = model.stream() {
        // From here on, GPU times on this thread are measured on the stream that the model uses.
        cuda::set_current_stream(stream);
    }
    println!(
        "training with {} digits, testing with {} others, on {}",
        images.len(),
        test.len(),
        model.device_name()
    );
    let mut trainer = Trainer {
        model,
        images,
        unseen: Vec::new(),
        random,
        board: Arc::clone(&board),
    };

    for epoch in 0..EPOCHS {
        // The context form measures a block, and returns the block's value.
        let loss =
            measure_execution_time_context!("epoch", log = board.clone(), global_step = epoch, {
                trainer.train_epoch()?
            });
        board.add_scalar("train/loss", loss, epoch)?;
        let accuracy = trainer.evaluate(&test, epoch)?;
        println!(
            "epoch {epoch:2}  loss {loss:.4}  accuracy {:5.1} %",
            100.0 * accuracy
        );
        if let Some(profile) = &profile {
            profile.step();
        }
    }
    if let Some(profile) = profile {
        profile.stop();
        if !profile.wait(Duration::from_secs(10)) {
            println!("the trace is not complete after ten seconds");
        }
    }
    report::show(options, &board)
}

fn main() -> ExitCode {
    let outcome = Options::from_arguments().and_then(|options| match options {
        Some(options) => run(&options),
        None => Ok(()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
