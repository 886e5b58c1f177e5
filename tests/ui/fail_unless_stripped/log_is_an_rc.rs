use std::rc::Rc;

use profiler_runtime::{TracingLogger, measured};

struct Trainer {
    board: Rc<TracingLogger>,
}

impl Trainer {
    #[measured(log = self.board)]
    fn train(&self) {}

    #[measured(log = Rc::clone(&self.board))]
    fn test(&self) {}
}

fn main() {}
