use profiler_runtime::{TensorBoardLogger, measured};

struct Trainer {
    board: TensorBoardLogger,
    limit: f64,
}

impl Trainer {
    #[measured(log = &self.board)]
    fn train(&self) {}

    #[measured(log = |tag, milliseconds, _| if milliseconds > self.limit { println!("{tag}") })]
    fn test(&self) {}
}

fn main() {}
