//! The decorator and the context manager of mdml-tools, with a log for `TensorBoard`.
//!
//! ```text
//! cargo run --release --example mdml_tools
//! tensorboard --logdir runs
//! ```

use std::sync::{Arc, LazyLock};

use profiler_runtime::{TensorBoardLogger, measure_execution_time, measure_execution_time_context};

static BOARD: LazyLock<Arc<TensorBoardLogger>> =
    LazyLock::new(|| Arc::new(TensorBoardLogger::new("runs/mdml_tools").expect("a log")));

struct Trainer {
    writer: Arc<TensorBoardLogger>,
    step: usize,
}

impl Trainer {
    #[measure_execution_time(log = self.writer, global_step = self.step)]
    fn forward(&mut self, x: f32) -> f32 {
        self.step += 1;
        x.max(0.0)
    }

    #[measure_execution_time(log = self.writer.clone(), bypass = self.step < 2)]
    fn backward(&self, loss: f32) -> f32 {
        loss / self.step as f32
    }
}

#[measure_execution_time(log = BOARD)]
fn load() -> Vec<f32> {
    vec![1.0, -1.0]
}

#[measure_execution_time(log = BOARD.clone(), name = "validation")]
fn validate(batch: &[f32]) -> f32 {
    batch.iter().sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut trainer = Trainer {
        writer: BOARD.clone(),
        step: 0,
    };
    for (epoch, batch) in [load(), load()].iter().enumerate() {
        let loss = measure_execution_time_context!("train", log = BOARD, global_step = epoch, {
            let mut loss = 0.0;
            for x in batch {
                loss += trainer.forward(*x);
            }
            trainer.backward(loss)
        });
        trainer.writer.add_scalar("loss/train", loss, epoch)?;
        BOARD.add_scalar("loss/test", validate(batch), epoch)?;
    }
    BOARD.flush()?;
    println!("{}", BOARD.path().display());
    Ok(())
}
