use profiler_runtime::measure_execution_time;

#[measure_execution_time]
unsafe extern "C" {
    fn abs(value: i32) -> i32;
}

fn main() {}
