//! One logger for the whole program: a static `LazyLock`, made when the first call is logged.
#![deny(warnings)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use profiler_runtime::log::LogError;
use profiler_runtime::{
    ScalarLogger, TensorBoardLogger, measure, measure_execution_time, measured,
};

#[derive(Default)]
struct Board(AtomicU64);

impl ScalarLogger for Board {
    fn add_scalar(&self, _tag: &str, _value: f64, step: u64) -> Result<(), LogError> {
        self.0.store(step, Ordering::Relaxed);
        Ok(())
    }
}

static BOARD: LazyLock<Arc<Board>> = LazyLock::new(Arc::default);
static OBJECT: LazyLock<Arc<dyn ScalarLogger>> = LazyLock::new(|| Arc::new(Board::default()));
static FUNCTION: LazyLock<fn(&str, f64, u64)> = LazyLock::new(|| |_, _, _| ());
static UNUSED: LazyLock<Arc<TensorBoardLogger>> = LazyLock::new(|| panic!("no call is logged"));

mod boards {
    pub static INNER: std::sync::LazyLock<std::sync::Arc<super::Board>> =
        std::sync::LazyLock::new(std::sync::Arc::default);
}

#[measure_execution_time(log = BOARD)]
fn by_name() {}

#[measure_execution_time(log = BOARD.clone())]
fn cloned() {}

#[measured(log = &BOARD)]
fn by_reference() {}

#[measured(log = &*BOARD)]
fn dereferenced() {}

#[measured(log = Arc::clone(&BOARD))]
fn cloned_by_path() {}

#[measured(log = boards::INNER)]
fn by_path() {}

#[measured(log = OBJECT)]
async fn object() {}

#[measured(log = FUNCTION)]
fn function() {}

#[measured(log = UNUSED, bypass = true)]
fn not_logged() {}

struct Trainer;

#[measured(log = BOARD, log_every = 2)]
impl Trainer {
    fn train(&mut self) {}
}

fn main() {
    by_name();
    cloned();
    by_reference();
    dereferenced();
    cloned_by_path();
    by_path();
    drop(object());
    function();
    not_logged();
    Trainer.train();
    measure!("section", log = BOARD, {});
    let _guard = measure!("guard", log = BOARD);
    assert!(BOARD.0.load(Ordering::Relaxed) < 10);
}
