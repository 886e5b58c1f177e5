use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub const fn area(width: u32, height: u32) -> u32 {
    width * height
}

fn main() {}
