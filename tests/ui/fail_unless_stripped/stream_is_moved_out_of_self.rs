use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::measure_execution_time;

struct Trainer {
    stream: Arc<CudaStream>,
}

impl Trainer {
    #[measure_execution_time(stream = self.stream)]
    fn train(&self) {}
}

fn main() {}
