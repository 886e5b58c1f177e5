use profiler_runtime::measure_execution_time;

struct Trainer {
    log: u8,
}

impl Trainer {
    #[measure_execution_time(log = self.log.)]
    fn train(&self) {}
}

fn main() {}
