use profiler_runtime::measure_execution_time;

struct Trainer;

#[measure_execution_time(cuda_graph)]
impl Trainer {
    fn train(&self) {}

    async fn fetch(&self) {}

    #[measure_execution_time(cuda_graph = false)]
    async fn left_out(&self) {}
}

fn main() {}
