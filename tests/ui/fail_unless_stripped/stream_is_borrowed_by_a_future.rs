use cudarc::driver::CudaStream;
use profiler_runtime::measure_execution_time;

#[measure_execution_time(stream = stream)]
async fn train(stream: &CudaStream) -> usize {
    stream.context().ordinal()
}

fn main() {}
