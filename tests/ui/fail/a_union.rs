use profiler_runtime::measure_execution_time;

#[measure_execution_time]
union Bits {
    float: f32,
    integer: u32,
}

fn main() {}
