use profiler_runtime::record_function;

fn main() {
    record_function!("model_inference" {});
}
