use profiler_runtime::measure_execution_time;

struct Trainer;

#[measure_execution_time(sync)]
impl Trainer {
    fn train(&self) {}

    async fn fetch(&self) {}

    #[measure_execution_time(sync = false)]
    async fn left_out(&self) {}
}

fn main() {}
