use profiler_runtime::measure_execution_time_context;

fn main() {
    measure_execution_time_context!("launch", sync, cuda_graph, {});
}
