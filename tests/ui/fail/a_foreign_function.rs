use profiler_runtime::measure_execution_time;

unsafe extern "C" {
    #[measure_execution_time]
    fn abs(value: i32) -> i32;
}

fn main() {}
