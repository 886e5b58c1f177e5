//! A logger: an `Arc`, a `&'static`, a closure; from the arguments, from `self`, from anywhere.
#![deny(warnings)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, measure_execution_time};

#[derive(Default)]
struct Last(AtomicU64);

impl ScalarLogger for Last {
    fn add_scalar(&self, _tag: &str, _value: f64, step: u64) -> Result<(), LogError> {
        self.0.store(step, Ordering::Relaxed);
        Ok(())
    }
}

static SHARED: Last = Last(AtomicU64::new(0));

struct Trainer {
    board: Arc<Last>,
    epoch: u32,
}

impl Trainer {
    #[measure_execution_time(log = self.board.clone(), global_step = self.epoch)]
    fn train(&mut self) {
        self.epoch += 1;
    }

    #[measure_execution_time(log = Arc::clone(&self.board), log_every = 100)]
    async fn later(self) -> u32 {
        self.epoch
    }

    #[measure_execution_time(log = self.board.clone())]
    fn consumed(self) -> Arc<Last> {
        self.board
    }
}

#[measure_execution_time(log = &SHARED)]
fn to_static() {}

#[measure_execution_time(log = logger)]
fn to_argument(logger: &'static Last) -> u64 {
    logger.0.load(Ordering::Relaxed)
}

#[measure_execution_time(log = |tag, milliseconds, step| println!("{tag} {milliseconds} {step}"))]
fn to_closure() {}

#[measure_execution_time(log = move |_, milliseconds, _| assert!(milliseconds >= 0.0 || limit > 9))]
fn to_closure_with(limit: u8) -> u8 {
    limit
}

#[measure_execution_time(log = |_tag, _milliseconds, _step| {}, global_step = step + 1)]
fn to_closure_as_step(step: usize) -> usize {
    step
}

fn main() {
    let mut trainer = Trainer {
        board: Arc::default(),
        epoch: 0,
    };
    trainer.train();
    assert_eq!(trainer.epoch, 1);
    drop(
        Trainer {
            board: Arc::default(),
            epoch: 0,
        }
        .later(),
    );
    drop(trainer.consumed());
    to_static();
    to_argument(&SHARED);
    to_closure();
    assert_eq!(to_closure_with(1), 1);
    assert_eq!(to_closure_as_step(2), 2);
}
