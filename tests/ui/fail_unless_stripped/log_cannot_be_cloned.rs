use profiler_runtime::{ScalarLogger, TensorBoardLogger, measured};

struct Trainer {
    board: TensorBoardLogger,
}

impl Trainer {
    #[measured(log = self.board)]
    fn train(&self) {}
}

#[measured(log = board)]
fn boxed(board: Box<dyn ScalarLogger>) {}

fn main() {}
