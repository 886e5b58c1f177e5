use profiler_runtime::record_function;

fn main() {
    let _guard = record_function!();
}
